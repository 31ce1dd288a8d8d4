"""`ranks new NAME`: write a workload in one file that trains as it is."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from keyword import iskeyword
from pathlib import Path
from typing import Literal

from ranks.cli.flags.parse import Positional, parse
from ranks.errors import UserError

TEMPLATES = Path(__file__).parents[1] / "templates"
DEFAULT_ENV = 'env: str = "CartPole-v1"'
"""The line of the template that names its environment."""


@dataclass(frozen=True)
class NewFlags:
    """Write NAME.py: a small workload that trains as it is. Put your data and model into it."""

    name: Positional[str]
    """Its name, for example my_task."""
    shape: Literal["supervised", "on-policy", "self-play"] = "supervised"
    """What it learns from: samples, a gymnasium environment (PPO), or its own games of a board game."""
    env: str | None = None
    """The gymnasium environment of an on-policy workload; CartPole-v1 without it. It is made once,
    as a check."""


def new(argv: Sequence[str]) -> int:
    """Copy the template under the new name."""
    flags = parse(NewFlags, argv, prog="ranks new")
    name = flags.name.removesuffix(".py").replace("-", "_")
    asked = f"ranks new {flags.name}"
    if not name.isidentifier() or iskeyword(name):
        raise UserError(asked, f"{name!r} is not a Python name", "use letters, digits and _, for example my_task")
    if flags.env is not None and flags.shape != "on-policy":
        raise UserError(f"--env {flags.env}", f"a {flags.shape} workload has no environment", "add --shape on-policy")
    path = Path(f"{name}.py")
    text = (TEMPLATES / f"{flags.shape.replace('-', '_')}.py").read_text(encoding="utf-8")
    if is_module(name, text):
        found = f"{path} would hide the Python module {name} from every file in this folder"
        raise UserError(asked, found, f"choose another name, for example my_{name}")
    text = text.replace("template", name)
    has_gymnasium = importlib.util.find_spec("gymnasium") is not None
    if flags.env is not None:
        text = text.replace(DEFAULT_ENV, f"env: str = {json.dumps(flags.env)}")
        if has_gymnasium:
            check_environment(flags.env)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UserError(asked, f"{path} is there already", "choose another name, or move that file") from None
    except OSError as error:
        raise UserError(
            asked, f"{path} cannot be written: {error.strerror}", "go to a folder that you may write in"
        ) from None
    renamed = "" if flags.name in (name, path.name) else f" (a Python name has no '-', so it is {name})"
    print(f"wrote {path}{renamed}; it trains as it is")
    if flags.shape == "on-policy" and not has_gymnasium:
        print("  pip install 'ranks[gymnasium]'")
    if flags.shape == "self-play" and importlib.util.find_spec("numba") is None:
        print("  pip install 'ranks[selfplay]'")
    print(f"  ranks train ./{path}")
    print(f"  ranks train ./{path} --help")
    return 0


def is_module(name: str, text: str) -> bool:
    """Whether `import NAME` means a module of Python, an installed package, or a package that the
    template imports."""
    imported = re.findall(r"^(?:from|import) (\w+)", text, re.MULTILINE)
    return name in sys.stdlib_module_names or name in imported or name in metadata.packages_distributions()


def check_environment(env_id: str) -> None:
    """Make and close a gymnasium environment. Raises UserError where that fails."""
    from ranks.rl.gymnasium import make_env

    make_env(env_id).close()
