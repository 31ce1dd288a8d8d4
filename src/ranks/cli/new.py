"""`ranks new NAME`: a workload of one's own, in one file that trains as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks.cli.parse import Positional, parse
from ranks.errors import UserError

TEMPLATE = Path(__file__).with_name("template.py")


@dataclass(frozen=True)
class Flags:
    """Write NAME.py here: a small supervised workload that trains as it is, to be filled with your data and model."""

    name: Positional[str]
    """Its name: a Python word such as my_task."""


def new(argv: Sequence[str]) -> int:
    """Copy the template under the new name."""
    flags = parse(Flags, argv, prog="ranks new")
    name = flags.name.removesuffix(".py").replace("-", "_")
    asked = f"ranks new {flags.name}"
    if not name.isidentifier():
        raise UserError(asked, f"{name!r} is no Python name", "use letters, digits and _, such as my_task")
    path = Path(f"{name}.py")
    text = TEMPLATE.read_text(encoding="utf-8").replace("template", name)
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
    print(f"  ranks train ./{path}")
    print(f"  ranks train ./{path} --help")
    return 0
