"""`ranks chess-value analyse GAME.pgn`: what each move of a game was worth.

Imports Numba and matplotlib inside the function only, so that `--help` answers at once.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ranks.errors import UserError

if TYPE_CHECKING:
    from ranks.chess.players.player import Limits

DEFAULT_NODES = 100_000


def analyse(
    file: Path,
    /,
    *,
    player: str | None = None,
    nodes: int | None = None,
    movetime: float | None = None,
    depth: int | None = None,
    game: int | None = None,
    out: Path | None = None,
) -> int:
    """Score each move of the games in a PGN file: an evaluation graph, an annotated PGN, and a summary.

    Args:
        file: A .pgn or .pgn.gz file. Games that cannot be read are named and skipped.
        player: engine, chess-value, run:RUN, uci:stockfish, ...; by default chess-value where the package has a net,
            else engine.
        nodes: Nodes of each position; 100,000 without another limit.
        movetime: Seconds for each position, instead of nodes.
        depth: Plies for each position, instead of nodes.
        game: The number of one game in the file; by default all games.
        out: The folder of annotated.pgn and the pictures; by default FILE-analysis in the current folder.
    """
    limits, searched = limits_of(nodes, movetime, depth)
    if game is not None and game < 1:
        raise UserError(f"--game {game}", "games are counted from 1", "give 1 or more")
    asked = f"ranks chess-value analyse {file}"

    from ranks.chess.commands.players import make_player
    from ranks.chess.players.player import Forfeit
    from ranks.progress import ProgressBar
    from ranks.workloads.chess_value.analysis.games import PGN, GamesAnalysis

    word = player or default_player()
    searcher = make_player(word)
    place = out or Path(f"{file.name.removesuffix('.gz').removesuffix('.pgn')}-analysis")
    try:
        with ProgressBar() as bar:
            analysis = GamesAnalysis(searcher, limits, f"{word}, {searched}", place, bar)
            analysis.run(file, game)
    except Forfeit as fault:
        do = "run the engine's command by hand, or name another player"
        raise UserError(f"the player '{word}'", f"the engine {fault}", do) from None
    except OSError as error:
        found = f"{error.filename or place}: {error.strerror or error}"
        raise UserError(asked, found, "give a writable folder with --out") from None
    finally:
        searcher.close()
    if not analysis.done:
        what = f"no game {game}" if game is not None else "no game that can be read"
        found = f"{what} in {file}; games skipped: {len(analysis.skipped)}"
        raise UserError(asked, found, "give a file of PGN games")
    pictures = "1 picture" if analysis.done == 1 else f"{analysis.done} pictures"
    print(f"written: {place / PGN} and {pictures}; games skipped: {len(analysis.skipped)}")
    return 0


def limits_of(nodes: int | None, movetime: float | None, depth: int | None) -> tuple[Limits, str]:
    """The limits of each search, and how they are called. Raises UserError for several or for no number above 0."""
    from ranks.chess.commands.match_options import conditions

    if nodes is None and movetime is None and depth is None:
        nodes = DEFAULT_NODES
    limits = conditions(None, nodes, depth, movetime).limits
    text = f"{nodes:,} nodes" if nodes else f"depth {depth}" if depth else f"{movetime:g} s"
    return limits, f"{text} a position"


def default_player() -> str:
    """chess-value where the package ships a net, else the engine with its tables."""
    from ranks.workloads.chess_value.players.saved_net import CONFIG, SHIPPED

    return "chess-value" if (SHIPPED / CONFIG).exists() else "engine"
