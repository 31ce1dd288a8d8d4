"""docs/chess-spiking.md against the settings that it describes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ranks.workloads.chess_spiking import PRESETS, Config

PAGE = (Path(__file__).parents[2] / "docs" / "chess-spiking.md").read_text(encoding="utf-8")
CONFIGS = {"none (the default)": Config(), **{f"`{name}`": preset() for name, preset in PRESETS.items()}}


@pytest.mark.parametrize("name", CONFIGS)
def test_the_page_shows_each_preset(name: str) -> None:
    cfg = CONFIGS[name]
    (row,) = (line for line in PAGE.splitlines() if line.startswith(f"| {name} |"))
    _, _, net, games, simulations, _ = (cell.strip() for cell in row.split("|"))
    assert games == f"{cfg.iterations} x {cfg.games_per_iteration:,}"
    assert simulations == ("none" if cfg.selfplay.search == "none" else str(cfg.selfplay.simulations))
    assert net.endswith(f", {cfg.net.steps} steps")
    if cfg.net.kind == "residual":
        assert net.startswith(f"{cfg.net.blocks} blocks of {cfg.net.width} channels, ")


def test_the_page_and_the_presets_have_the_measured_iterations() -> None:
    """40 iterations took 30.5 minutes on one machine (chess_spiking_shipped_2026-11-23.json), 53.4 on another."""
    for name in ("demo", "small"):
        (said,) = re.findall(rf"--preset {name} --name {name} .* (\d+) to (\d+) minutes on 2 CPU cores", PAGE)
        for minutes, each in zip((30.5, 53.4), said, strict=True):
            assert abs(minutes / 40 * PRESETS[name]().iterations - int(each)) <= 0.5, name


def test_the_page_counts_the_presets() -> None:
    table = PAGE.split("| Preset |")[1].split("\n\n")[0]
    assert len(table.splitlines()) == 2 + len(CONFIGS)
