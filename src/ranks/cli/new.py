"""`ranks new NAME`: a workload of one's own, in one file that trains as it is."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ranks.cli.parse import Positional, parse
from ranks.errors import UserError

TEMPLATES = {
    "supervised": Path(__file__).with_name("template_supervised.py"),
    "on-policy": Path(__file__).with_name("template_on_policy.py"),
}
DEFAULT_ENV = 'env: str = "CartPole-v1"'
"""The line of the template that names its environment."""


@dataclass(frozen=True)
class Flags:
    """Write NAME.py here: a small workload that trains as it is, to be filled with your data and model."""

    name: Positional[str]
    """Its name: a Python word such as my_task."""
    shape: Literal["supervised", "on-policy"] = "supervised"
    """What it learns from: samples, or an environment that it acts in (PPO)."""
    env: str | None = None
    """The gymnasium environment of an on-policy one, which is made once to see whether it can be; CartPole-v1 without
    it."""


def new(argv: Sequence[str]) -> int:
    """Copy the template under the new name."""
    flags = parse(Flags, argv, prog="ranks new")
    name = flags.name.removesuffix(".py").replace("-", "_")
    asked = f"ranks new {flags.name}"
    if not name.isidentifier():
        raise UserError(asked, f"{name!r} is no Python name", "use letters, digits and _, such as my_task")
    if flags.env is not None and flags.shape != "on-policy":
        raise UserError(f"--env {flags.env}", "a supervised workload has no environment", "add --shape on-policy")
    path = Path(f"{name}.py")
    text = TEMPLATES[flags.shape].read_text(encoding="utf-8").replace("template", name)
    has_gymnasium = importlib.util.find_spec("gymnasium") is not None
    if flags.env is not None:
        text = text.replace(DEFAULT_ENV, f"env: str = {json.dumps(flags.env)}")
        if has_gymnasium:
            _make(flags.env)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UserError(asked, f"{path} is there already", "choose another name, or move that file") from None
    except OSError as error:
        raise UserError(
            asked, f"{path} cannot be written: {error.strerror}", "go to a folder that you may write in"
        ) from None
    print(f"{path} is yours: read it from top to bottom, it trains as it is.")
    if flags.shape == "on-policy" and not has_gymnasium:
        print("  pip install 'ranks[gymnasium]'")
    print(f"  ranks train ./{path}")
    print(f"  ranks train ./{path} --help")
    return 0


def _make(env_id: str) -> None:
    """Raises UserError where it cannot be made."""
    from ranks.rl.gymnasium import make_env

    make_env(env_id).close()
