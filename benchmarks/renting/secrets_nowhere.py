"""30 secrets in process variables, arguments and settings: none may be in a file, a log, a checkpoint, a generated file
or a message.

    python -m benchmarks.renting.secrets_nowhere  writes benchmarks/results/secrets_nowhere.json, in about three minutes

12 are process variables of every command: a run is trained, evaluated, exported and pulled, data are pushed, three
files are generated, and a watcher talks to a provider that repeats the key. 12 are arguments and 6 are settings of
a user's workload: those commands must be refused with exit code 2. Then all files and all messages are searched.
"""

from __future__ import annotations

import base64
import os
import random
import string
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measure import SOURCE, origin, write_result
from tests.renting.catalog import write_catalog
from tests.renting.stub_provider import StubProvider, honest
from tests.transfer.sshd import LocalSshd

VARIABLES = (
    *("HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "RUNPOD_API_KEY", "LAMBDA_API_KEY"),
    *(
        "GITHUB_TOKEN",
        "MODAL_TOKEN_SECRET",
        "DB_PASSWORD",
        "KAGGLE_KEY",
        "OPENAI_API_KEY",
        "PGPASSWORD",
    ),
)
SETTINGS = ("api_key", "hub_token", "password", "access_key", "secret", "auth_token")
SUBMIT = ("--no-forecast", "--overwrite")
SLURM = ("submit", "slurm", "./task.py", "--gpus", "none", "--ranks", "1", *SUBMIT)
SKY = ("submit", "sky", "./task.py", "--gpus", "none", "--ranks", "1", "--image", "me/ranks:1", *SUBMIT)
MODAL = ("submit", "modal", "./task.py", "--gpus", "B200:4", "--image", "me/ranks:1", "--price", "25", *SUBMIT)
TRAIN = ("train", "./task.py", "--gpus", "none", "--ranks", "1")


def arguments(new: random.Random) -> list[tuple[str, tuple[str, ...]]]:
    """(secret, command that holds it)."""
    plain = [word(new) for _ in range(8)]
    formed = [f"hf_{word(new)}", f"ghp_{word(new)}", f"sk-{word(new)}", f"rpa_{word(new)}"]
    commands: list[tuple[str, ...]] = [
        (*TRAIN, "--api-key", plain[0]),
        (*TRAIN, f"--hf-token={plain[1]}"),
        (*SLURM, f"--train=--password {plain[2]}"),
        (*SLURM, f"--setup=export HF_TOKEN={plain[3]}"),
        (*SKY, f"--setup=export API_KEY={plain[4]}"),
        (*SKY, f"--secrets=HF_TOKEN={plain[5]}"),
        (*MODAL, f"--train=--auth-token {plain[6]}"),
        (*SLURM, f"--sbatch=--export=WANDB_API_KEY={plain[7]}"),
        (*TRAIN, "--name", formed[0]),
        (*SLURM, f"--name={formed[1]}"),
        (*SKY, f"--setup=pip install https://{formed[2]}@example.org/mine.zip"),
        (*MODAL, f"--image=ghcr.io/me/{formed[3]}:1"),
    ]
    return list(zip([*plain, *formed], commands, strict=True))


def word(new: random.Random) -> str:
    """24 letters and digits."""
    return "".join(new.choices(string.ascii_letters + string.digits, k=24))


class Machine:
    """A folder, and the commands that are run in it. `said`: all that they print."""

    def __init__(self, folder: Path, secrets: dict[str, str]) -> None:
        self.folder = folder
        self.env = {**os.environ, "PYTHONPATH": SOURCE, "HOME": str(folder / "home"), **secrets}
        self.rows, self.said = list[dict[str, Any]](), ""

    def run(self, *argv: str, code: int = 0, **more: str) -> None:
        """Run a command of `ranks`, which must end with this exit code."""
        command = [sys.executable, "-m", "ranks", *argv]
        env = {**self.env, **more}
        done = subprocess.run(
            command, cwd=self.folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.said += done.stdout
        self.rows.append({"command": argv[:3], "exit_code": done.returncode, "right": done.returncode == code})
        print(self.rows[-1], "" if done.returncode == code else done.stdout[-600:], flush=True)


def found_in(text: bytes, secrets: list[str]) -> list[str]:
    """Secrets in a text, as they are or in base64."""
    return [s for s in secrets if s.encode() in text or base64.b64encode(s.encode()).rstrip(b"=")[:-1] in text]


def main() -> int:
    """Exit code 1 where a secret is found, or a command ends in another way than it must."""
    new = random.Random(20)
    variables = {name: word(new) for name in VARIABLES}
    asked = arguments(new)
    with tempfile.TemporaryDirectory(prefix="secrets-") as name:
        folder = Path(name)
        write_catalog(folder / "home/.sky/catalogs/v8")
        machine = Machine(folder, variables)
        machine.run("new", "task")
        machine.run(*TRAIN, "--iterations", "40", "--save-every", "10")
        machine.run("evaluate", "task", "--gpus", "none")
        machine.run("export", "task")
        machine.run("logs", "task")
        for submit in (SLURM, SKY, MODAL):
            machine.run(*submit, *(["--secrets", "HF_TOKEN"] if submit is not SLURM else []))
        key = variables["RUNPOD_API_KEY"]
        with StubProvider(honest, key="another key") as stub:
            refused = {"RUNPOD_POD_ID": "pod1"}
            machine.run("autodown", "task", "--provider", "runpod", "--api", stub.api, code=2, **refused)
        with StubProvider(lambda stub: (500, {"error": f"wrong key {key}"}), key=key) as stub:
            watch = ["autodown", "task", "--provider", "runpod", "--api", stub.api, "--keep", "1s", "--start", "1s"]
            process = subprocess.Popen(
                [sys.executable, "-m", "ranks", *watch], cwd=folder, env={**machine.env, **refused},
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip
            while not stub.ended:
                time.sleep(0.1)
                if process.poll() is not None:
                    break
            try:
                process.communicate(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
            machine.said += process.communicate()[0] or ""
        (folder / "sshd").mkdir()
        (folder / "data").mkdir()
        (folder / "data" / "a.txt").write_text("1")
        with LocalSshd(folder / "sshd") as sshd:
            machine.run("push", "data", f"{sshd.host}:{folder}/there", f"--ssh={sshd.options}")
            place = f"{sshd.host}:{folder}/runs/task"
            machine.run("pull", place, "--runs-dir", "pulled", f"--ssh={sshd.options}")
        for _, command in asked:
            machine.run(*command, code=2)
        settings = {name: word(new) for name in SETTINGS}
        task = (folder / "task.py").read_text()
        sources: list[Path] = []
        field = "    iterations: int"
        assert field in task
        for setting, secret in settings.items():
            sources.append(folder / f"with_{setting}.py")
            sources[-1].write_text(task.replace(field, f'    {setting}: str = "{secret}"\n{field}', 1))
            machine.run("train", f"./with_{setting}.py", "--gpus", "none", "--ranks", "1", code=2)
        secrets = [*variables.values(), *(secret for secret, _ in asked), *settings.values()]
        assert all(found_in(path.read_bytes(), secrets) for path in sources), "the search finds nothing"
        files = [path for path in folder.rglob("*") if path.is_file() and path not in sources]
        hits = {str(p.relative_to(folder)): found for p in files if (found := found_in(p.read_bytes(), secrets))}
        in_messages = found_in(machine.said.encode(), secrets)
        kinds = {p.suffix or p.name: 0 for p in files}
        for path in files:
            kinds[path.suffix or path.name] += 1
    right = not hits and not in_messages and all(row["right"] for row in machine.rows) and len(secrets) == 30
    content = {
        "origin": origin(),
        "verdict": "PASS" if right else "FAIL",
        "secrets": {"process variables": len(variables), "arguments": len(asked), "settings": len(settings)},
        "files_searched": len(files),
        "by_ending": kinds,
        "files_with_a_secret": {name: len(found) for name, found in hits.items()},
        "secrets_in_messages": len(in_messages),
        "commands": machine.rows,
    }
    print(content["verdict"], hits, in_messages, len(files), write_result("secrets_nowhere", content))
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
