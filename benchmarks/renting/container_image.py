"""Build the Dockerfile from a Debian base without Docker, and use the image for a whole run.

    python -m benchmarks.renting.container_image --base FOLDER        writes benchmarks/results/container_image.json

It takes about ten minutes. FOLDER is a Debian root file system: debootstrap --variant=minbase
--include=ca-certificates bookworm FOLDER. buildah builds with --isolation chroot, as root. The second build has a base
that brings its own torch, which must stay as it is. The image is also started as a pod, which ssh reaches. Packages of
pip and apt come from where this machine takes them; --volume HOST:CONTAINER shows the image a mirror.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measure import ROOT, origin, write_result

BUILDAH = ("buildah", "--storage-driver", "vfs")
TRAIN = (
    "ranks --version",
    "id -un",
    "env -i bash -lc 'ranks --version'",
    "/opt/ranks/tools/container_entry.sh --version",
    "/opt/ranks/tools/container_entry.sh bash -c 'echo a program starts'",
    "ranks doctor --gpus 0 --ranks 1",
    "ranks train graph-coloring --preset demo --gpus none --ranks 1 --name image --iterations 20",
    "ranks evaluate image --gpus none",
    "ranks export image",
    "ls runs/image/export",
)
ENTRY = "/opt/ranks/tools/container_entry.sh"
PORT = 40022
TORCH = "import torch; print(torch.__version__, torch.__file__)"


def run(*command: str) -> str:
    """The output of a command. Exits where it fails."""
    print("$", shlex.join(command), flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout[-3000:]}\nexit code {done.returncode}: {shlex.join(command)}")
    return done.stdout


def make_base(name: str, folder: Path) -> None:
    """An image of a root file system."""
    container = run(*BUILDAH, "from", "scratch").split()[-1]
    run(*BUILDAH, "add", "-q", container, str(folder), "/")
    run(*BUILDAH, "commit", "-q", container, name)
    run(*BUILDAH, "rm", container)


def build(base: str, name: str, volumes: list[str]) -> float:
    """Build the Dockerfile; seconds."""
    began = time.monotonic()
    options = [part for volume in volumes for part in ("--volume", volume)]
    options += ["--isolation", "chroot", "--build-arg", f"BASE=localhost/{base}", "--format", "docker"]
    run(*BUILDAH, "build", *options, "-t", name, str(ROOT))
    return round(time.monotonic() - began, 1)


def use(image: str, commands: tuple[str, ...]) -> list[dict[str, Any]]:
    """Run commands one after another in a container of the image, as the image's own user."""
    container = run(*BUILDAH, "from", f"localhost/{image}").split()[-1]
    rows = list[dict[str, Any]]()
    for command in commands:
        began = time.monotonic()
        output = run(*BUILDAH, "run", "--isolation", "chroot", container, "--", "sh", "-c", command)
        rows.append({"command": command, "s": round(time.monotonic() - began, 1), "output": output.splitlines()[-12:]})
        print("\n".join(rows[-1]["output"]), flush=True)
    run(*BUILDAH, "rm", container)
    return rows


def with_torch(base: str, name: str, volumes: list[str]) -> str:
    """An image with the Python and the torch of a rented machine's base; what its torch says of itself."""
    container = run(*BUILDAH, "from", f"localhost/{base}").split()[-1]
    options = ["--isolation", "chroot", *(part for volume in volumes for part in ("--volume", volume))]
    inside = (*BUILDAH, "run", *options, container, "--", "sh", "-c")
    run(*inside, "apt-get update && apt-get install -y --no-install-recommends python3 python3-venv python3-pip")
    run(*inside, "pip install --break-system-packages -q 'torch>=2.11,<2.14'")
    said = run(*inside, f"python3 -c {shlex.quote(TORCH)}").strip().splitlines()[-1]
    run(*BUILDAH, "commit", "-q", container, name)
    run(*BUILDAH, "rm", container)
    return said


def pod(image: str) -> dict[str, Any]:
    """The image as a pod that ssh reaches: `ranks push` and a login shell through its own sshd. A container of buildah
    has the network of this machine."""
    folder = Path(tempfile.mkdtemp(prefix="pod-"))
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key"))
    (folder / "data").mkdir()
    (folder / "data" / "a.bin").write_bytes(b"x" * 100_000)
    container = run(*BUILDAH, "from", f"localhost/{image}").split()[-1]
    inside = (*BUILDAH, "run", "--isolation", "chroot", "--user", "root", container, "--")
    script = f"PUBLIC_KEY={shlex.quote((folder / 'key.pub').read_text().strip())} exec {ENTRY} sshd -p {PORT}"
    daemon = subprocess.Popen([*inside, "sh", "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    options = f"-F none -p {PORT} -i {folder}/key -o UserKnownHostsFile={folder}/known "
    options += "-o StrictHostKeyChecking=accept-new -o LogLevel=ERROR -o ConnectionAttempts=30"
    ssh = ("ssh", *shlex.split(options), "root@127.0.0.1")
    try:
        said = {"ranks --version": run(*ssh, "bash -lc 'ranks --version'").strip()}
        pushed = run(
            sys.executable, "-m", "ranks", "push", str(folder / "data"), "root@127.0.0.1:/work", f"--ssh={options}"
        )
        said["ranks push"] = pushed.strip().splitlines()[-1]
    finally:
        daemon.terminate()
        daemon.wait()
        run(*BUILDAH, "rm", container)
        shutil.rmtree(folder)
    return said


def main() -> int:
    """Both builds, and a run in each. Exit code 1 where the torch of the base was replaced."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--volume", action="append", default=[])
    asked = parser.parse_args()
    found: dict[str, Any] = {"origin": origin(), "buildah": run("buildah", "--version").strip()}
    found["origin"]["command"] = "python -m benchmarks.renting.container_image --base FOLDER"
    make_base("ranks-base", asked.base)
    found["cpu"] = {"build_s": build("ranks-base", "ranks-cpu", asked.volume)}
    found["cpu"]["used"] = use("ranks-cpu", TRAIN)
    found["cpu"]["as a pod"] = pod("ranks-cpu")
    before = with_torch("ranks-base", "ranks-base-torch", asked.volume)
    found["base with torch"] = {"build_s": build("ranks-base-torch", "ranks-torch", asked.volume)}
    command = f"python3 -c {shlex.quote(TORCH)}"
    found["base with torch"]["used"] = use("ranks-torch", (command, f"/opt/ranks/.venv/bin/{command}", *TRAIN[:3]))
    after = [row["output"][-1] for row in found["base with torch"]["used"][:2]]
    found["base with torch"]["torch_before"], found["base with torch"]["kept"] = before, after == [before, before]
    write_result("container_image", found)
    print("the torch of the base is", "kept" if found["base with torch"]["kept"] else f"REPLACED: {before} {after}")
    return 0 if found["base with torch"]["kept"] else 1


if __name__ == "__main__":
    sys.exit(main())
