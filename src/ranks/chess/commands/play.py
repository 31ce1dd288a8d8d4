"""`ranks chess play`: a game against a player, in the terminal."""

from __future__ import annotations

import contextlib
import datetime
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from ranks.chess.board import Board, Outcome, Result
from ranks.chess.diagram import Style, draw
from ranks.chess.pgn import Game, appended, write_game
from ranks.chess.players.player import Choice, Forfeit, Limits, Player
from ranks.chess.players.words import make_player
from ranks.chess.san import format_san, parse_san
from ranks.errors import UserError

HINTS_BY = "alphabeta:12?evaluation=position"
COMMANDS = "a move (e4, Nf3, O-O, e2e4), undo, hint, fen, resign, quit"
MEANINGS = {
    "checkmate": "Checkmate",
    "stalemate": "Stalemate: the side to move has no legal move and is not in check",
    "insufficient material": "Draw: neither side has enough to mate",
    "fifty moves": "Draw: fifty moves of each side without a capture or a pawn move",
    "threefold repetition": "Draw: the position has stood three times",
}


def play(
    *,
    player: str = "alphabeta:12?evaluation=position",
    colour: Literal["white", "black"] = "white",
    fen: str | None = None,
    movetime: float = 1.0,
    pgnout: Path | None = None,
    seed: int = 0,
) -> int:
    """Play a game of chess against a player, with moves as e4, Nf3, O-O or e2e4.

    Args:
        player: Whom to play against: random, greedy, minimax:2, alphabeta:4, mcts:800, uci:stockfish, ...
        colour: Your own.
        fen: The position to begin with; without it, the initial one.
        movetime: Seconds that the player has for a move.
        pgnout: File to which the game is appended, also when it is left before its end.
        seed: Of all that the player draws.
    """
    if not 0 < movetime < float("inf"):
        raise UserError(f"--movetime {movetime}", "no time to think", "give seconds above 0")
    board = Board(fen)
    with contextlib.ExitStack() as stack:
        pgn = stack.enter_context(appended(pgnout)) if pgnout else None
        opponent = stack.enter_context(contextlib.closing(make_player(player)))
        try:
            opponent.new_game(seed)
        except Forfeit as fault:
            do = "start the program by itself, and look what it says"
            raise UserError(f"--player {player}", f"the program {fault}", do) from fault
        table = Table(board, opponent, colour == "white", Limits(movetime_s=movetime), style_of_the_terminal())
        print(f"You have {colour} against {player}. Type {COMMANDS}.")
        try:
            result = table.play(input)
        finally:
            if pgn and board.moves:
                write_game(pgn, table.as_game())
                print(f"The game was added to {pgnout}")
    return 0 if result else 1


class Table:
    """A game between someone at the terminal and a player."""

    def __init__(self, board: Board, opponent: Player, own_white: bool, limits: Limits, style: Style) -> None:
        self.board, self.opponent, self.own_white = board, opponent, own_white
        self.result: Result | None = None
        self._limits = limits
        self._style: Style = style
        self._begin = board.fen()

    def play(self, ask: Callable[[str], str]) -> bool:
        """Until the game is over or left. False where the player could not go on."""
        self._show()
        while self.result is None:
            outcome = self.board.outcome()
            if outcome:
                self.result = outcome.result
                print(explain(outcome))
            elif self.board.white_to_move == self.own_white:
                try:
                    line = ask(f"{self._number()} your move: ")
                except EOFError:
                    print()
                    return True
                if line.strip() == "quit":
                    return True
                self.obey(line.strip())
            elif not self._reply():
                return False
        return True

    def obey(self, line: str) -> None:
        """Carry out what was typed: a command or a move."""
        commands = {"undo": self._undo, "hint": self._hint, "fen": self._fen, "resign": self._resign, "": self._show}
        if line in commands:
            commands[line]()
        elif line in ("help", "?"):
            print(f"Type {COMMANDS}; an empty line shows the board.")
        else:
            try:
                self.board.push(read_move(self.board, line))
                self._show()
            except ValueError as error:
                print(f"{error}. (help: what can be typed)")

    def _reply(self) -> bool:
        try:
            choice = self.opponent.choose(self.board.copy(), self._limits)
        except Forfeit as fault:
            print(f"{self.opponent.name} {fault}: the game is yours.")
            self.result = "1-0" if self.own_white else "0-1"
            return False
        text = f"{self._number()} {format_san(self.board, choice.move)}{opinion(choice)}"
        self.board.push(choice.move)
        self._show()
        print(f"{self.opponent.name} plays {text}")
        return True

    def _number(self) -> str:
        """The number of the next move: `12.` or `12...`."""
        return self.board.fen().split()[5] + ("." if self.board.white_to_move else "...")

    def _show(self) -> None:
        last = self.board.moves[-1] if self.board.moves else None
        print(draw(self.board.words, style=self._style, black_below=not self.own_white, last_move=last))

    def _undo(self) -> None:
        if self.board.ply < 2:
            print("There is no move of yours to take back.")
            return
        self.board.pop()
        self.board.pop()
        self._show()

    def _hint(self) -> None:
        adviser = make_player(HINTS_BY)
        choice = adviser.choose(self.board, Limits(movetime_s=1.0))
        adviser.close()
        print(f"{format_san(self.board, choice.move)} looks good{opinion(choice)}")

    def _fen(self) -> None:
        print(self.board.fen())

    def _resign(self) -> None:
        self.result = "0-1" if self.own_white else "1-0"
        print(f"You resign: {self.result}")

    def as_game(self) -> Game:
        """The game so far, as PGN holds it."""
        names = ("you", self.opponent.name) if self.own_white else (self.opponent.name, "you")
        today = f"{datetime.date.today():%Y.%m.%d}"
        headers = {"Event": "ranks chess play", "Date": today, "White": names[0], "Black": names[1]}
        fen = None if self._begin == Board().fen() else self._begin
        return Game(headers, fen, tuple(self.board.moves), {}, self.result or "*")


def read_move(board: Board, text: str) -> int:
    """The legal move that a text means, in the words of UCI or of PGN. Raises ValueError that says what is wrong."""
    with contextlib.suppress(ValueError):
        return board.parse_move(text.lower())
    return parse_san(board, text)


def opinion(choice: Choice) -> str:
    """What a player thinks of its move, for the side that makes it: ` (+0.35, depth 6)`."""
    if choice.mate_in is not None:
        return f" (mate in {choice.mate_in})" if choice.mate_in > 0 else f" (mated in {-choice.mate_in})"
    return "" if choice.score_cp is None else f" ({choice.score_cp / 100:+.2f}, depth {choice.depth})"


def explain(outcome: Outcome) -> str:
    """How the game ended, in a sentence."""
    winner = {"1-0": "White wins, ", "0-1": "Black wins, "}.get(outcome.result, "")
    return f"{MEANINGS[outcome.reason]}. {winner}{outcome.result}"


def style_of_the_terminal() -> Style:
    """Colours where stdout is a terminal that has them, Unicode where it can be written, letters elsewhere."""
    if not (sys.stdout.encoding or "").lower().startswith("utf"):
        return "letters"
    colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return "colours" if colours else "unicode"
