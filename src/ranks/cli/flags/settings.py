"""The settings of one `ranks train` command line. Flags override --config FILE, which overrides
--preset."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal

from ranks.cli.after_run import Cost
from ranks.cli.flags.advice import TRAIN_ADVICE
from ranks.cli.flags.outline import load_outline, wants_help
from ranks.cli.flags.parse import FLATTENED, Switch, parse
from ranks.engine.config import RunConfig
from ranks.engine.config_file import encode, overlay, read_object
from ranks.engine.runs.folder import RunFolder
from ranks.engine.user_file import add_folder_to_path
from ranks.errors import UserError, nearest
from ranks.secrets import refuse_in_settings
from ranks.workloads import CONTRACT, check_config, is_path, load

NO_HELP = {"help": ""}
"""Of the fields of the whole command line, whose parts have their own. Otherwise tyro parses this file to find it."""


@dataclass(frozen=True)
class TrainFlags:
    """The flags of `ranks train` that are no part of a run's settings."""

    gpus: str = "all"
    """all, none, how many (2), or which: a list has a comma (0,2 or 3,) and counts inside
    CUDA_VISIBLE_DEVICES."""
    ranks: int | None = None
    """Number of processes; without it one per GPU, or on the CPU one per core, at most 8."""
    max_restarts: int = 3
    """How often ranks that died are restarted from the newest checkpoint before the run gives
    up."""
    on_hang: Literal["restart", "report"] = "restart"
    """What follows when a rank hangs: restart all ranks from the newest checkpoint, as after a
    kill; or only report it."""
    price: float | None = None
    """What the machine costs an hour. It is said at the end of the run, whatever ends it."""
    max_cost: float | None = None
    """Save and stop with exit code 0 when this command has cost so much, by --price. The iteration that is
    running is finished first."""
    max_hours: float | None = None
    """Save and stop with exit code 0 after so many hours of this command, as --max-time does with other units."""
    then: str | None = None
    """A shell command that runs after the end of the run, good or bad, when all is saved: one that ends the
    machine. It gets RANKS_EXIT_CODE and RANKS_RUN_DIR. Not after Ctrl-C, and not where no rank was started. Rejected
    under torchrun and Slurm, which may start the ranks again."""
    export: str | None = None
    """What to export at the end of the run: safetensors (always written), onnx, or both with a comma."""
    preset: str | None = None
    """Name of one of the workload's presets."""
    config: Path | None = None
    """JSON file with settings, as printed by --print-config. It overrides the preset; flags
    override both."""
    print_config: Annotated[bool, Switch] = False
    """Print all settings as JSON and exit."""


@dataclass(frozen=True)
class Settings:
    """The settings of one command line."""

    workload: str
    module: ModuleType
    flags: TrainFlags
    engine: RunConfig
    config: Any
    """The workload's own Config."""
    cost: Cost

    def as_json(self) -> str:
        """What --print-config prints and --config reads."""
        parts = {"workload": self.workload, "engine": encode(self.engine), "config": encode(self.config)}
        return json.dumps(parts, indent=2)


def resolve(workload: str, argv: Sequence[str], *, outline: bool = False) -> Settings:
    """Parse the command line of `ranks train WORKLOAD`. `--help` prints and exits 0. Raises
    UserError.

    `outline`: the module of a user's file has only Config and PRESETS. A launcher that starts other
    processes needs no more, and saves the import of torch.
    """
    module = (load_config(workload) if outline or wants_help(argv) else None) or load(workload)
    argv = with_own_names(argv, getattr(module, "FLAG_ALIASES", {}))
    config = initial_config(workload, module, value_of("--preset", argv))
    engine = RunConfig()
    file = value_of("--config", argv)
    if file is not None:
        engine, config = with_file(Path(file), workload, engine, config)
    shared = {f.name for f in fields(config)} & {f.name for part in (TrainFlags, RunConfig) for f in fields(part)}
    if shared:
        found = f"Config has fields with the names of flags that every workload has: {', '.join(sorted(shared))}"
        raise UserError(f"ranks train {workload}", found, "rename these fields")
    target: Callable[..., Any] = make_dataclass(
        "Train",
        [
            ("flags", Annotated[TrainFlags, FLATTENED], field(default=TrainFlags(), metadata=NO_HELP)),
            ("engine", Annotated[RunConfig, FLATTENED], field(default=engine, metadata=NO_HELP)),
            ("config", Annotated[type(config), FLATTENED], field(default=config, metadata=NO_HELP)),
        ],
        frozen=True,
    )
    about = description(workload, module)
    asked = parse(target, argv, prog=f"ranks train {workload}", description=about, advice=TRAIN_ADVICE, pairs=True)
    refuse_in_settings(asked.engine)
    refuse_in_settings(asked.config)
    cost = Cost(asked.flags.price, asked.flags.max_cost, asked.flags.then, asked.flags.max_hours)
    named = cost.limited(replace(asked.engine, name=asked.engine.name or Path(workload).stem))
    RunFolder.of(named.runs_dir, str(named.name))  # raises UserError for a name that no folder can have
    return Settings(workload, module, asked.flags, named, asked.config, cost)


def with_own_names(argv: Sequence[str], aliases: Mapping[str, str]) -> list[str]:
    """The arguments with each flag of `aliases` (other name -> name) replaced; `--cycles=5` too."""

    def own(word: str) -> str:
        flag, equals, value = word.partition("=")
        return aliases[flag] + equals + value if flag in aliases else word

    return [own(word) for word in argv]


def load_config(workload: str) -> ModuleType | None:
    """What the flags need of a user's file: Config and PRESETS. None where the whole file must be
    loaded."""
    path = Path(workload)
    if not is_path(workload) or not path.is_file():
        return None
    add_folder_to_path(path)
    module = load_outline(path, path.stem, ["Config", "PRESETS"], required=CONTRACT)
    if module is not None:
        check_config(module.Config, f"the workload in {workload}")
    return module


def initial_config(workload: str, module: ModuleType, preset: str | None) -> Any:
    """The workload's default Config, or one of its presets. Raises UserError with the nearest
    name."""
    if preset is None:
        return module.Config()
    presets: Mapping[str, Callable[[], Any]] = getattr(module, "PRESETS", {})
    if preset not in presets:
        listed = f"{workload} has {', '.join(presets) or 'none'}"
        raise UserError(f"--preset {preset}", "no such preset", nearest(preset, list(presets), listed))
    return presets[preset]()


def with_file(path: Path, workload: str, engine: RunConfig, config: Any) -> tuple[RunConfig, Any]:
    """Engine and workload settings, overridden by those in a JSON file. Raises UserError."""
    asked = f"--config {path}"
    content = read_object(path, asked)
    unknown = set(content) - {"workload", "engine", "config"}
    if unknown:
        do = nearest(min(unknown), ["workload", "engine", "config"], "its keys are workload, engine and config")
        raise UserError(asked, f"the file has a key {min(unknown)}", do)
    if content.get("workload", workload) != workload:
        raise UserError(
            asked, f"the file has settings of {content['workload']}", f"ranks train {content['workload']} {asked}"
        )
    engine = overlay(engine, content.get("engine", {}), asked, "engine")
    return engine, overlay(config, content.get("config", {}), asked, "config")


def value_of(flag: str, argv: Sequence[str]) -> str | None:
    """The value of one flag, found before the whole command line is parsed."""
    for index, argument in enumerate(argv):
        if argument == flag and index + 1 < len(argv):
            return argv[index + 1]
        if argument.startswith(flag + "="):
            return argument.removeprefix(flag + "=")
    return None


def description(workload: str, module: ModuleType) -> str:
    """The first lines of the help page."""
    presets = ", ".join(getattr(module, "PRESETS", {}))
    first = (module.__doc__ or workload).strip().splitlines()[0]
    return first + (f" Presets: {presets}." if presets else "")
