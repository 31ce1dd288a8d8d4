"""Keys and passwords of a user: kept out of every file and message. A run records its settings, and a file for a
cluster its command line, so a secret in them is refused. It belongs into a process variable, which nothing records."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from ranks.errors import UserError

NAME = re.compile(
    r"(^|_)(secret|(pg)?password|passwd|sshpass|mysql_pwd|github_pat|passphrase|credentials?"
    r"|(api|access|private|auth|secret|signing|account|storage|kaggle)_?key"
    r"|(api|access|auth|hf|hub|bearer|refresh|session|login)_?token|token)$",
    re.IGNORECASE,
)
"""The end of the name of a variable or setting that holds a secret: HF_TOKEN and wandb_api_key, not num_tokens."""
VALUE = re.compile(
    r"\b(sk-[A-Za-z0-9_-]{16,}|hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|AKIA[A-Z0-9]{16}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,}|glpat-[\w-]{16,}|rpa_[A-Za-z0-9]{16,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]+)"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
"""Keys of well-known services, by their form."""
SHORTEST = 8
"""Shorter values of process variables are words such as `none`, which may be anywhere."""
HIDDEN = "(hidden)"
IN_FILE = "it holds a secret, and the file would hold it too"
INSTEAD = 'keep it in a process variable (export NAME=...), and read that in your code: os.environ["NAME"]'


def is_secret_name(name: str) -> bool:
    """Whether a setting or a variable of this name holds a secret."""
    return NAME.search(name.strip("-").replace("-", "_").replace(".", "_")) is not None


def values_of(environ: Mapping[str, str]) -> set[str]:
    """The secrets in process variables."""
    return {v for k, v in environ.items() if is_secret_name(k) and len(v) >= SHORTEST}


def is_secret(text: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a text holds a secret of a process variable, or a key of a well-known form."""
    return VALUE.search(text) is not None or any(value in text for value in values_of(environ))


def hide(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """A text without the secrets that `is_secret` knows, and without what follows a flag such as --api-key."""
    for value in sorted(values_of(environ), key=len, reverse=True):
        text = text.replace(value, HIDDEN)

    def without_value(match: re.Match[str]) -> str:
        return f"{match[1]}{match[2]}{HIDDEN}" if is_secret_name(match[1]) else match[0]

    text = re.sub(r"([\w.-]+)(=)([^\s$]\S*)", without_value, VALUE.sub(HIDDEN, text))
    return re.sub(r"(--[\w.-]+)( )(?!--)([^\s$]\S*)", without_value, text)


def refuse_in_settings(settings: Any, prefix: str = "") -> None:
    """Raises UserError where a text of a dataclass is a secret, by the name of its field or by its form."""
    for field in fields(settings):
        name, value = f"{prefix}{field.name}", getattr(settings, field.name)
        if is_dataclass(value):
            refuse_in_settings(value, f"{name}.")
        elif isinstance(value, str) and value and (is_secret_name(field.name) or is_secret(value)):
            flag = f"--{name.replace('_', '-')}"
            raise UserError(f"{flag} {HIDDEN}", "it holds a secret, and a run records its settings", INSTEAD)


def refuse_in_words(words: Iterable[str]) -> None:
    """Raises UserError where a command line that is to be written into a file holds a secret. `NAME=$NAME` is none."""
    before = ""
    for word in words:
        names = re.findall(r"(?<![\w.-])([\w.-]+)[= ](?=[\"']?[^\s\"'$])", word)
        names += [before] if before.startswith("--") and not word.startswith(("--", "$")) else []
        if is_secret(word) or any(map(is_secret_name, names)):
            raise UserError(hide(f"{before} {HIDDEN}"), IN_FILE, INSTEAD)
        before = word
