"""Thirty secrets, in process variables, arguments and config files: in no file, no output, no checkpoint."""

from __future__ import annotations

import json
import random
import string
from pathlib import Path

import pytest

from ranks.cli.main import main
from ranks.secrets import hide, is_secret_name
from tests.cli.conftest import HERE

VARIABLES = [
    *("HF_TOKEN", "WANDB_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "RUNPOD_API_KEY"),
    *("MODAL_TOKEN_SECRET", "DB_PASSWORD", "OPENAI_API_KEY", "SSH_PASSPHRASE", "AZURE_CREDENTIALS"),
]
FIELDS = ["api_key", "hf_token", "db_password", "private_key", "secret"]
FORMS = ["sk-{}", "hf_{}", "ghp_{}", "github_pat_{}", "xoxb-{}"]


def secret(index: int) -> str:
    """A word that no file holds by chance."""
    return "".join(random.Random(index).choices(string.ascii_letters + string.digits, k=32))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a workload that has settings for secrets, and ten secrets in process variables."""
    monkeypatch.chdir(tmp_path)
    for index, name in enumerate(VARIABLES):
        monkeypatch.setenv(name, secret(index))
    assert main(["new", "task"]) == 0
    path = tmp_path / "task.py"
    settings = "".join(f'    {name}: str = free("")\n' for name in (*FIELDS, "note"))
    path.write_text(path.read_text().replace("    hidden: int = 64\n", f"    hidden: int = 64\n{settings}"))
    return tmp_path


def test_thirty_secrets_reach_no_file_and_no_output(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    train = ["train", "./task.py", "--gpus", "none", "--ranks", "1", "--iterations", "2", *HERE]
    submit = ["submit", "slurm", "./task.py", "--gpus", "none", "--ranks", "1"]
    arguments = [(f"--{name.replace('_', '-')}", secret(10 + i)) for i, name in enumerate(FIELDS)]
    arguments += [("--note", form.format(secret(15 + i))) for i, form in enumerate(FORMS)]
    in_files = [(name, secret(20 + i)) for i, name in enumerate(FIELDS)]
    in_files += [("note", form.format(secret(25 + i))) for i, form in enumerate(FORMS)]
    outside = folder.parent / f"{folder.name}-given.json"  # what the user has written himself
    for number, (flag, value) in enumerate(arguments):
        refused = [
            [*train, flag, value],
            [*train, f"{flag}={value}"],
            [*submit, f"--train={flag} {value}"],
            [*submit, "--setup", f"export SOME_TOKEN={value}"],
        ]
        for argv in refused if number % 3 == 0 else refused[:1]:
            assert main(argv) == 2, flag
    for name, value in in_files:
        outside.write_text(json.dumps({"config": {name: value}}))
        assert main([*train, "--config", str(outside)]) == 2
    for name in VARIABLES:
        assert main([*train, "--note", secret(VARIABLES.index(name))]) == 2
    assert main([*train, f"--unknown-token={secret(10)}"]) == 2
    assert not (folder / "runs").exists()
    assert list(folder.glob("*.sbatch")) == []

    assert main(train) == 0
    assert main([*submit, "--setup", "export HF_TOKEN=$HF_TOKEN"]) == 0
    said = capfd.readouterr()
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert any(path.name == "learner.safetensors" for path in files)
    assert (folder / "task.sbatch") in files
    for index in range(30):
        assert secret(index) not in said.out + said.err
        assert [str(path) for path, content in files.items() if secret(index).encode() in content] == []


@pytest.mark.parametrize("name", ["num_tokens", "max_tokens", "token_dim", "key", "tokenizer", "keys", "secretary"])
def test_names_of_ordinary_settings(name: str) -> None:
    assert not is_secret_name(name)


def test_a_message_without_secrets_is_left_as_it_is() -> None:
    text = "asked: --max-tokens 512\nfound: 3 tokens\n   do: export HF_TOKEN=$HF_TOKEN; ssh -p 2222 gpu-box"
    assert hide(text, {"API_KEY": "short"}) == text
    assert hide("asked: --api-key abc", {}) == "asked: --api-key (hidden)"
