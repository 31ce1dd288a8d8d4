"""A trained policy and the config of its run, read back from the run's folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ranks.engine.config_file import overlay, read_object
from ranks.engine.export.load_export import load_export
from ranks.engine.runs.folder import CONFIG_FILE
from ranks.errors import UserError
from ranks.workloads.stock_trading.config import Config
from ranks.workloads.stock_trading.policy import TradingPolicy


@dataclass(frozen=True, eq=False)
class Trained:
    """`name` and `seed` of the run; `sha256` of the weights."""

    name: str
    folder: Path
    seed: int
    cfg: Config
    policy: TradingPolicy
    sha256: str


def load_run(run: str, runs_dir: Path = Path("runs")) -> Trained:
    """A run by its name under runs/, or by its folder. Raises UserError where it is none of stock-trading's, or has not
    finished."""
    asked = f"the run {run}"
    folder = next((f for f in (runs_dir / run, Path(run)) if (f / CONFIG_FILE).is_file()), None)
    if folder is None:
        raise UserError(asked, f"no run of that name in {runs_dir}/, and no run folder", "see `ranks runs`")
    content = read_object(folder / CONFIG_FILE, asked)
    if content.get("workload") != "stock-trading":
        raise UserError(asked, f"it trained {content.get('workload')}", "name a run of stock-trading")
    if not (folder / "export").is_dir():
        raise UserError(asked, "it has no export yet", f"let it finish, or run: ranks export {run}")
    cfg = overlay(Config(), content.get("config", {}), asked, "config")
    policy, sha256 = load_export(folder / "export" / "model.safetensors", TradingPolicy, asked)
    seed = int(content.get("engine", {}).get("seed", 0))
    return Trained(folder.name, folder, seed, cfg, policy, sha256)
