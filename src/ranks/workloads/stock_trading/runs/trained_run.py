"""Load a finished run: its config and its trained policy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ranks.engine.config import RunConfig
from ranks.engine.config_file import overlay
from ranks.engine.export.load_export import load_export
from ranks.engine.runs.find_run import find_folder
from ranks.engine.runs.folder import RunFolder
from ranks.errors import UserError
from ranks.workloads.stock_trading.config import Config
from ranks.workloads.stock_trading.policy.trading_policy import TradingPolicy


@dataclass(frozen=True, eq=False)
class TrainedRun:
    """A finished run. `sha256` is the hash of the weights."""

    name: str
    folder: Path
    seed: int
    cfg: Config
    policy: TradingPolicy
    sha256: str


def load_run(run: str, runs_dir: Path = Path("runs")) -> TrainedRun:
    """Load a run by its name in `runs_dir`, or by its folder.

    Raises UserError if it is not a run of stock-trading, has not finished, or was made by another version of ranks.
    """
    asked = f"the run {run}"
    folder = find_folder(run, runs_dir, asked)
    content = RunFolder(folder).read_settings()
    if content["workload"] != "stock-trading":
        raise UserError(asked, f"a run of {content['workload']}", "name a run of stock-trading")
    if not (folder / "export").is_dir():
        raise UserError(asked, "it has no export yet", f"wait until it has finished, or run: ranks export {run}")
    cfg = overlay(Config(), content["config"], asked, "config")
    policy, sha256 = load_export(folder / "export" / "model.safetensors", TradingPolicy, asked)
    seed = overlay(RunConfig(), content["engine"], asked, "engine").seed
    return TrainedRun(folder.name, folder, seed, cfg, policy, sha256)
