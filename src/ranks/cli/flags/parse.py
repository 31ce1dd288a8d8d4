"""Flags from a dataclass or from a function's signature, by tyro; every refusal is a UserError."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Annotated, Any, NoReturn, TypeVar, cast, get_args, get_origin, get_type_hints

import tyro
from tyro import _errors as tyro_errors  # private: pyproject.toml limits tyro to the versions that were tested
from tyro.conf import FlagCreatePairsOff, PositionalMetavarFromFieldName
from tyro.conf import Positional as Positional

from ranks import sigterm
from ranks.cli.flags.advice import RENAMED_FLAGS, Advice
from ranks.cli.flags.fields import REGISTRY, with_plain_values
from ranks.errors import UserError, nearest

T = TypeVar("T")
Switch = FlagCreatePairsOff
"""Annotates a flag that has no --no- form."""
FLATTENED = tyro.conf.arg(name="", prefix_name=False)
"""Annotates a nested dataclass whose fields are flags without its name before them."""
POSITIONAL = get_args(Positional[str])[1]


def parse(
    target: Callable[..., T],
    argv: Sequence[str],
    *,
    prog: str,
    description: str | None = None,
    advice: Mapping[str, Sequence[Advice]] | None = None,
    pairs: bool = False,
) -> T:
    """The dataclass that the flags describe. `--help` prints and exits 0. Raises UserError.

    `pairs`: every switch can also be turned off (--exact, --no-exact), as files and presets may
    have turned it on."""

    def refuse(event: tyro_errors.ParseErrorEvent) -> NoReturn:
        raise refusal(event, argv, flags_of(target, pairs=pairs), prog, advice or {})

    markers = (PositionalMetavarFromFieldName, *(() if pairs else (FlagCreatePairsOff,)))
    with tyro_errors.on_parse_error(refuse):
        return tyro.cli(target, args=argv, prog=prog, description=description, config=markers, registry=REGISTRY)


def call(function: Callable[..., T], argv: Sequence[str], *, prog: str) -> T:
    """Call a typed function with arguments from the command line: positional-only ones by place,
    others by flag.

    SIGTERM raises SystemExit inside it.
    """
    command = parse(bound(function), argv, prog=prog)
    with sigterm.raises_system_exit():
        return command()


def bound(function: Callable[..., T]) -> Callable[..., Callable[[], T]]:
    """A function with the same signature that returns the call, not yet made. tyro reads its
    flags."""

    def bind(*args: Any, **kwargs: Any) -> Callable[[], T]:
        return functools.partial(function, *args, **kwargs)

    signature = inspect.signature(function)
    hints = get_type_hints(function, include_extras=True)
    for name in signature.parameters:
        if name.endswith("_"):  # from_ is --from, which is a keyword of Python
            hints[name] = Annotated[hints[name], tyro.conf.arg(name=name.rstrip("_"))]
        if len(name) == 1:  # k has the flags -k and --k
            hints[name] = Annotated[hints[name], tyro.conf.arg(aliases=(f"-{name}",))]
        if get_origin(hints[name]) is list:  # one value for each time that the flag is given
            hints[name] = Annotated[hints[name], tyro.conf.UseAppendAction]
        hints[name] = with_plain_values(hints[name])
        if signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:  # *files takes all that follow
            hints[name] = Positional[hints[name]]
    parameters = [p.replace(annotation=hints[p.name]) for p in signature.parameters.values()]
    shown: Any = bind
    shown.__name__, shown.__doc__, shown.__annotations__ = function.__name__, function.__doc__, hints
    shown.__signature__ = signature.replace(parameters=parameters)
    return bind


def flags_of(target: Callable[..., Any], *, pairs: bool = False, prefix: str = "") -> list[str]:
    """Every flag that a target takes; those of a nested dataclass begin with its field's name and a
    dot."""
    flags = [] if prefix else ["-h", "--help"]
    hints = get_type_hints(target, include_extras=True)
    for parameter in inspect.signature(target).parameters.values():
        hint = hints[parameter.name]
        kind, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        name = parameter.name.rstrip("_").replace("_", "-")
        if is_dataclass(kind):
            inner = flags_of(cast(type, kind), pairs=pairs, prefix=prefix if FLATTENED in marks else f"{prefix}{name}.")
            flags += [flag for flag in inner if flag not in flags]
        elif POSITIONAL not in marks and parameter.kind is not parameter.POSITIONAL_ONLY:
            flags.append(f"--{prefix}{name}")
            if kind is bool and pairs and Switch not in marks:
                flags.append(f"--{prefix}no-{name}")
    return flags


def refusal(
    event: tyro_errors.ParseErrorEvent,
    argv: Sequence[str],
    flags: Sequence[str],
    prog: str,
    advice: Mapping[str, Sequence[Advice]],
) -> UserError:
    """The error for what tyro refuses. An unknown flag comes first, since it often causes the other
    faults."""
    unknown = [given for given in argv if given.startswith("--") and flag_name(given) not in flags]
    unknown += event.tokens if isinstance(event, tyro_errors.UnrecognizedArgs) else []
    if unknown:
        return unknown_argument(unknown[0], flags, prog, advice)
    argument: Any = getattr(event, "argument", None)
    if isinstance(event, tyro_errors.MissingArgs):
        argument = event.missing_arguments[0].arg
    positional = argument is not None and argument.is_positional()
    flag = None if argument is None or positional else str(argument.lowered.name_or_flags[0])
    if isinstance(event, tyro_errors.InstantiationFailure):
        found = event.message
    elif isinstance(event, tyro_errors.InvalidChoice):
        found = f"{event.value!r} is none of {', '.join(map(repr, event.choices))}"
    elif argument is not None:
        found = f"no value for {argument.lowered.metavar if positional else flag}"
    else:
        found = "the arguments do not fit together"
    asked = as_given(flag, argv) if flag else " ".join([prog, *argv])
    return UserError(asked, found, f"see {flag} in {prog} --help" if flag else f"see {prog} --help")


def unknown_argument(given: str, flags: Sequence[str], prog: str, advice: Mapping[str, Sequence[Advice]]) -> UserError:
    """The error for an argument that the command does not take."""
    name = flag_name(given)
    if not given.startswith("-"):
        return UserError(given, f"{prog} takes no further argument", f"see {prog} --help")
    if RENAMED_FLAGS.get(name) in flags:
        return UserError(given, f"it is renamed to {RENAMED_FLAGS[name]}", f"give {RENAMED_FLAGS[name]}")
    for answer in advice.get(name, ()):
        if set(answer.flags) <= set(flags):
            return UserError(given, answer.found, answer.do)
    return UserError(given, f"{prog} has no such flag", nearest(name, flags, f"see {prog} --help"))


def as_given(flag: str, argv: Sequence[str]) -> str:
    """A flag with its value as typed on the command line; the last one counts."""
    for index, argument in reversed([*enumerate(argv)]):
        if flag_name(argument) == flag:
            return argument if "=" in argument else " ".join(argv[index : index + 2])
    return flag


def flag_name(argument: str) -> str:
    """'--run_dir=x' -> '--run-dir'."""
    return argument.split("=")[0].replace("_", "-")
