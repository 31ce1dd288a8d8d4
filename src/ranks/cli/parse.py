"""Flags from a dataclass or from a function's signature, by tyro; every refusal is a UserError."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import re
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import tyro
from tyro.conf import FlagCreatePairsOff, PositionalMetavarFromFieldName
from tyro.conf import Positional as Positional
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from ranks.cli import sigterm
from ranks.errors import UserError, nearest

T = TypeVar("T")
Switch = FlagCreatePairsOff
"""Annotates a flag that is never turned off again."""
FLATTENED = tyro.conf.arg(name="", prefix_name=False)
"""Annotates a nested dataclass whose fields stand as flags of their own, without its name before them."""


class Advice(NamedTuple):
    """What to answer to a flag that people bring from elsewhere."""

    found: str
    do: str


def parse(
    target: Callable[..., T],
    argv: Sequence[str],
    *,
    prog: str,
    description: str | None = None,
    advice: Mapping[str, Advice] | None = None,
    pairs: bool = False,
) -> T:
    """The dataclass that the flags describe. `--help` prints and exits 0. Raises UserError.

    `pairs`: every switch can also be turned off (--exact, --no-exact), as files and presets may have turned it on.
    """
    refusal = io.StringIO()
    try:
        with contextlib.redirect_stderr(refusal):
            value, unknown = tyro.cli(
                target,
                args=argv,
                prog=prog,
                description=description,
                return_unknown_args=True,
                config=markers(pairs),
                registry=REGISTRY,
            )
    except SystemExit as end:
        if not end.code:
            raise
        flags = flags_of(target, pairs=pairs)
        strange = [given for given in argv if given.startswith("--") and spelled(given) not in flags]
        if strange:
            raise unknown_flag(strange[0], flags, prog, advice or {}) from None
        raise bad_value(refusal.getvalue(), argv, prog) from None
    if unknown:
        raise unknown_flag(unknown[0], flags_of(target, pairs=pairs), prog, advice or {})
    return value


def call(function: Callable[..., T], argv: Sequence[str], *, prog: str) -> T:
    """Call a typed function with arguments from the command line: positional-only ones by place, others by flag.

    SIGTERM unwinds it.
    """

    def bind(*args: Any, **kwargs: Any) -> Callable[[], T]:
        return functools.partial(function, *args, **kwargs)

    signature = inspect.signature(function)
    hints = get_type_hints(function, include_extras=True)
    for name in signature.parameters:
        if name.endswith("_"):  # from_ is --from, since Python keeps that word for itself
            hints[name] = Annotated[hints[name], tyro.conf.arg(name=name.rstrip("_"))]
        if len(name) == 1:  # k answers to -k as well as to --k
            hints[name] = Annotated[hints[name], tyro.conf.arg(aliases=(f"-{name}",))]
        if get_origin(hints[name]) is list:  # one value for each time that the flag is given
            hints[name] = Annotated[hints[name], tyro.conf.UseAppendAction]
    parameters = [p.replace(annotation=hints[p.name]) for p in signature.parameters.values()]
    looks: Any = bind
    looks.__name__, looks.__doc__, looks.__annotations__ = function.__name__, function.__doc__, hints
    looks.__signature__ = signature.replace(parameters=parameters)
    command = parse(bind, argv, prog=prog)
    with sigterm.unwinds():
        return command()


def flags_of(target: Callable[..., Any], *, pairs: bool = False) -> list[str]:
    """Every flag that a target takes, as its help lists them."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        tyro.cli(target, args=["--help"], config=markers(pairs), registry=REGISTRY)
    columns = re.findall(r"^[│ ] (-.*?)(?:  |$)", text.getvalue(), re.MULTILINE)
    return [flag for column in columns for flag in re.findall(r"(?<![-\w])--?\w[-\w.]*", column)]


def markers(pairs: bool) -> tuple[Any, ...]:
    """How tyro is to read every target."""
    return (PositionalMetavarFromFieldName, *(() if pairs else (FlagCreatePairsOff,)))


def unknown_flag(given: str, flags: Sequence[str], prog: str, advice: Mapping[str, Advice]) -> UserError:
    """The answer to an argument that nobody takes."""
    name = spelled(given)
    if name in advice:
        return UserError(given, advice[name].found, advice[name].do)
    if not given.startswith("-"):
        return UserError(given, f"{prog} takes no further argument", f"see {prog} --help")
    return UserError(given, f"{prog} has no such flag", nearest(name, flags, f"see {prog} --help"))


def bad_value(refusal: str, argv: Sequence[str], prog: str) -> UserError:
    """What tyro drew in a box, said in three lines."""
    drawn = refusal.splitlines()  # ╭ title ╮ body ─── more ╰╯, or without Unicode: title --- body --- more
    lines = [line.strip("│ ") for line in drawn if not line.startswith(("╭", "╰"))]
    blocks: list[list[str]] = [[]]
    for line in lines:
        if line and set(line) <= set("─-"):
            blocks.append([])
        else:
            blocks[-1].append(line)
    body = " ".join(" ".join(blocks[0] if "╭" in refusal else blocks[min(1, len(blocks) - 1)]).split())
    quoted = re.search(r"(?:Error parsing |argument ')(-[-\w.]+)", body)
    flag = quoted[1] if quoted else None
    found = re.sub(r"^Error parsing \S+: ", "", body)
    found = re.sub(r"^Missing (?:from [^:]*: (\S+)|value for argument '([^']+)').*", r"no value for \1\2", found)
    asked = as_given(flag, argv) if flag else " ".join([prog, *argv])
    return UserError(asked, found or "that cannot be read", f"see {flag or 'usage'} in {prog} --help")


def as_given(flag: str, argv: Sequence[str]) -> str:
    """A flag with the value that stands behind it on the command line."""
    for index, argument in enumerate(argv):
        if spelled(argument) == flag:
            return argument if "=" in argument else " ".join(argv[index : index + 2])
    return flag


def spelled(argument: str) -> str:
    """'--run_dir=x' -> '--run-dir'."""
    return argument.split("=")[0].replace("_", "-")


WORDS: dict[type, tuple[str, str]] = {
    int: ("N", "a whole number"),
    float: ("X", "a number"),
    str: ("TEXT", "text"),
    Path: ("PATH", "a path"),
}
REGISTRY = ConstructorRegistry()


@REGISTRY.primitive_rule
def plain_values(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """Numbers, text and paths; tuples of them with commas (5,3); and `none` where a value may be left out."""
    inner, optional = without_none(info.type)
    is_tuple = get_origin(inner) is tuple
    if is_tuple:
        items = get_args(inner)
        many = items[-1] is Ellipsis
        kinds = items[:1] if many else items
    else:
        many, kinds = False, (inner,)
    if not all(kind in WORDS for kind in kinds):
        return None
    shape = ",".join(WORDS[kind][0] for kind in kinds) + (",..." if many else "")

    accepted = tuple if is_tuple else (float, int) if inner is float else inner

    def read(arguments: list[str]) -> Any:
        text = arguments[0]
        if optional and text.lower() == "none":
            return None
        if not is_tuple:
            return one(kinds[0], text)
        parts = [part.strip() for part in text.strip("()[]").split(",") if part.strip()]
        if not many and len(parts) != len(kinds):
            raise ValueError(f"{text!r} has {len(parts)} values where {len(kinds)} are wanted")
        return tuple(one(kind, part) for kind, part in zip(kinds * len(parts) if many else kinds, parts, strict=False))

    def write(value: Any) -> list[str]:
        if value is None:
            return ["none"]
        return [",".join(map(str, value)) if is_tuple else str(value)]

    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=shape + ("|none" if optional else ""),
        instance_from_str=read,
        is_instance=lambda value: (optional and value is None) or isinstance(value, accepted),
        str_from_instance=write,
    )


def without_none(annotation: Any) -> tuple[Any, bool]:
    """`int | None` -> (int, True)."""
    if get_origin(annotation) in (Union, types.UnionType):
        kept = [part for part in get_args(annotation) if part is not type(None)]
        if len(kept) == 1 and len(get_args(annotation)) == 2:
            return kept[0], True
    return annotation, False


def one(kind: type, text: str) -> Any:
    """A single value. Raises ValueError in words that a person understands."""
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"{text!r} is not {WORDS[kind][1]}") from None
