"""Write the generated tables of README and docs from the result files: `python -m benchmarks.figures`.

Each row names the command, the date and the hardware. A figure without a result file has no row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.measure import RESULTS, ROOT
from benchmarks.pages import renting
from benchmarks.pages.chess import chess
from benchmarks.pages.chess_value import chess_value
from benchmarks.pages.coloring import coloring
from benchmarks.pages.hardware import before_renting, forecast_and_fact, in_short, while_running
from benchmarks.pages.hardware import rows as hardware_rows
from benchmarks.pages.loading import loading
from benchmarks.pages.on_policy import on_policy
from benchmarks.pages.results import headlines, newest, results
from benchmarks.pages.selfplay import self_play, spiking
from benchmarks.pages.trading import trading
from benchmarks.pages.video import video


def all_results(proofs: Path, benchmarks: Path) -> Iterator[str]:
    """Every figure, by section."""
    yield from results(proofs, benchmarks)
    yield from in_short(proofs, benchmarks)
    yield from renting.rented(proofs, benchmarks)


def readme(proofs: Path, benchmarks: Path) -> Iterator[str]:
    """The figures that come first, and a forecast with its facts."""
    yield from headlines(proofs, benchmarks, hardware_rows(newest(benchmarks)))
    yield from forecast_and_fact(benchmarks)


PROOFS = ROOT / "results"
BEGIN, END = "<!-- figures: python -m benchmarks.figures -->", "<!-- end of figures -->"
PAGES: dict[Path, Callable[[Path, Path], Iterator[str]]] = {
    ROOT / "README.md": readme,
    ROOT / "docs" / "results.md": all_results,
    ROOT / "docs" / "graph-coloring.md": coloring,
    ROOT / "docs" / "stock-trading.md": trading,
    ROOT / "docs" / "chess-core.md": chess,
    ROOT / "docs" / "chess-value.md": chess_value,
    ROOT / "docs" / "video-behavior.md": video,
    ROOT / "docs" / "on-policy.md": on_policy,
    ROOT / "docs" / "loading.md": loading,
    ROOT / "docs" / "self-play.md": self_play,
    ROOT / "docs" / "chess-spiking.md": spiking,
    ROOT / "docs" / "before-you-rent.md": before_renting,
    ROOT / "docs" / "while-it-runs.md": while_running,
}
"""Pages with a generated part, and the function that gives its lines from (proofs, benchmarks)."""


def updated(page: Path) -> str:
    """The text of a page with the part between its markers written again."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    lines = "\n".join(PAGES[page](PROOFS, RESULTS)).rstrip()
    return f"{before}{BEGIN}\n\n{lines}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(updated(page), encoding="utf-8")
