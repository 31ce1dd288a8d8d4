"""Score every position of a game, and name the moves that lost much.

A move loses the win probability of the position before it minus that of the position after it, both for the side that
moves (`labels.units`, `players.score_units`). The names and their limits are those of Lichess
(modules/tree/src/main/Advice.scala: 0.1, 0.2 and 0.3 of winning chances from -1 to 1, which are half of that in win
probability)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ranks.chess.board import Board
from ranks.chess.pgn import PgnGame
from ranks.chess.players.player import Choice, Limits, Player
from ranks.chess.san import format_line, format_san
from ranks.errors import UserError
from ranks.workloads.chess_value.labels.units import MATE_CP, win_probability
from ranks.workloads.chess_value.players.score_units import label_cp

MISTAKES = ((0.15, "blunder"), (0.10, "mistake"), (0.05, "inaccuracy"))
"""The least loss of win probability, and its name."""
SHOWN_PLIES = 5
"""Of the best line."""


@dataclass(frozen=True)
class WhiteScore:
    """The score of a position. All values are for white."""

    cp: int | None
    """Centipawns as the player counts them; None for a mate, and where the rules end the game."""
    mate_in: int | None
    """Moves to mate: positive if white mates, negative if black does; 0 where the side to move is mated."""
    win: float
    """The win probability, with a draw as one half."""
    depth: int
    best: int | None
    """The best move; None where the rules end the game."""
    best_line: str
    """The best line in SAN."""

    @property
    def text(self) -> str:
        """'+0.35', '#3', '#-2', or 'draw'."""
        if self.mate_in is not None:
            return f"#{self.mate_in}"
        return "draw" if self.cp is None else f"{self.cp / 100:+.2f}"


@dataclass(frozen=True)
class MoveScore:
    """A move with the scores before and after it."""

    number: str
    """'12.' or '12...'."""
    san: str
    by_white: bool
    before: WhiteScore
    after: WhiteScore
    loss: float
    """Of win probability for the side that moved; 0 for the best move."""

    @property
    def mistake(self) -> str | None:
        """blunder, mistake, inaccuracy, or None."""
        return next((name for least, name in MISTAKES if self.loss >= least), None)

    @property
    def comment(self) -> str:
        """'Blunder: the win probability of white falls from 61 % to 20 %. Best was Nf3 Nc6.'; empty for other moves."""
        if self.mistake is None:
            return ""
        side = "white" if self.by_white else "black"
        before, after = (win if self.by_white else 1 - win for win in (self.before.win, self.after.win))
        mate = f" ({self.before.text})" if self.before.mate_in is not None else ""
        return f"{self.mistake.capitalize()}: the win probability of {side} falls from {before:.0%} to {after:.0%}." + (
            f" Best was {self.before.best_line}{mate}." if self.before.best_line else ""
        )


@dataclass(frozen=True)
class AnalysedGame:
    """A game with the scores of its positions: one more than it has moves."""

    game: PgnGame
    scores: tuple[WhiteScore, ...]
    moves: tuple[MoveScore, ...]

    @property
    def title(self) -> str:
        """'Morphy - Karl, 1858, 1-0'."""
        white, black, date = (self.game.headers.get(tag, "?") for tag in ("White", "Black", "Date"))
        year = f", {date[:4]}" if date[:4].isdecimal() else ""
        return f"{white} - {black}{year}, {self.game.result}"


def analyse_game(
    game: PgnGame, player: Player, limits: Limits, on_scored: Callable[[], None] = lambda: None
) -> AnalysedGame:
    """Score all positions of a game in their order. A draw that nobody claimed ends no game: its positions are then
    searched as if they had not occurred before. Raises UserError for a player that gives no scores, Forfeit where
    its engine fails. `on_scored` is called after each position."""
    board = Board(game.fen)
    player.new_game(0)
    sans = format_line(board.rows[:1].copy(), game.moves)
    scores = [score_position(board, player, limits, last=not game.moves)]
    on_scored()
    moves: list[MoveScore] = []
    for san, move in zip(sans, game.moves, strict=True):
        by_white, number = board.white_to_move, board.fen().split()[5]
        before = scores[-1]
        board.push(move)
        after = score_position(board, player, limits, last=len(scores) == len(game.moves))
        lost = before.win - after.win if by_white else after.win - before.win
        loss = 0.0 if move == before.best else max(0.0, lost)
        moves.append(MoveScore(f"{number}{'.' if by_white else '...'}", san, by_white, before, after, loss))
        scores.append(after)
        on_scored()
    return AnalysedGame(game, tuple(scores), tuple(moves))


def score_position(board: Board, player: Player, limits: Limits, *, last: bool = True) -> WhiteScore:
    """Let the player search a position. `last`: the game ends here, so a third repetition and fifty moves are a draw.
    Raises UserError for a player that gives no score."""
    sign = 1 if board.white_to_move else -1
    if not board.legal_moves():
        mated = board.in_check
        return WhiteScore(None, 0 if mated else None, (1 - sign) / 2 if mated else 0.5, 0, None, "")
    if not last and board.outcome() is not None:
        board = Board(" ".join([*board.fen().split()[:4], "0", "1"]))
    if board.outcome() is not None:
        return WhiteScore(None, None, 0.5, 0, None, "")
    choice = player.choose(board, limits)
    if choice.score_cp is None and choice.mate_in is None:
        found = "it gives no scores"
        do = "name a player that searches: engine, chess-value, run:RUN, alphabeta:6, uci:stockfish"
        raise UserError(f"the player '{player.name}'", found, do)
    clipped = label_cp(choice, player)
    win = float(win_probability(np.array([clipped], np.int16))[0])
    is_mate = choice.mate_in is not None or abs(clipped) >= MATE_CP
    return WhiteScore(
        None if is_mate else sign * (choice.score_cp or 0),
        sign * (choice.mate_in or 0) if is_mate else None,
        win if sign > 0 else 1 - win,
        choice.depth,
        choice.move,
        _line(board, choice),
    )


def _line(board: Board, choice: Choice) -> str:
    """The first moves of the best line in SAN."""
    line = choice.pv[:SHOWN_PLIES] or (choice.move,)
    try:
        return " ".join(format_line(board.rows[-1:].copy(), line))
    except ValueError:  # an engine's line may be odd; its move is legal
        return format_san(board, choice.move)
