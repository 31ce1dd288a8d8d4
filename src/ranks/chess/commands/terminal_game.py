"""A game between a person at the terminal and a player."""

from __future__ import annotations

import contextlib
import datetime
import os
import sys
from collections.abc import Callable

from ranks.chess.board import Board, Outcome, Result
from ranks.chess.commands.players import make_player
from ranks.chess.diagram import Style, draw
from ranks.chess.pgn import PgnGame
from ranks.chess.players.player import Choice, Forfeit, Limits, Player
from ranks.chess.san import format_san, parse_san

HINT_PLAYER = "alphabeta:12?evaluation=position"
COMMANDS = "a move (e4, Nf3, O-O, e2e4), undo, hint, fen, resign, quit"
MEANINGS = {
    "checkmate": "Checkmate",
    "stalemate": "Stalemate: the side to move has no legal move and is not in check",
    "insufficient material": "Draw: neither side has enough to mate",
    "fifty moves": "Draw: fifty moves of each side without a capture or a pawn move",
    "threefold repetition": "Draw: the position has occurred three times",
}


class TerminalGame:
    """A game between a person at the terminal and a player."""

    def __init__(self, board: Board, opponent: Player, own_white: bool, limits: Limits, style: Style) -> None:
        self.board, self.opponent, self.own_white = board, opponent, own_white
        self.result: Result | None = None
        self._limits = limits
        self._style: Style = style
        self._start_fen = board.fen()

    def play(self, ask: Callable[[str], str]) -> bool:
        """Play until the game ends or is left. Returns False if the player forfeits."""
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
                self.handle(line.strip())
            elif not self._reply():
                return False
        return True

    def handle(self, line: str) -> None:
        """Handle a typed line: a command or a move."""
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
                print(f"{error}. (Type help for a list of commands.)")

    def _reply(self) -> bool:
        try:
            choice = self.opponent.choose(self.board.copy(), self._limits)
        except Forfeit as fault:
            print(f"{self.opponent.name} {fault}: you win.")
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
            print("You have no move to take back.")
            return
        self.board.pop()
        self.board.pop()
        self._show()

    def _hint(self) -> None:
        player = make_player(HINT_PLAYER)
        choice = player.choose(self.board, Limits(movetime_s=1.0))
        player.close()
        print(f"{format_san(self.board, choice.move)} looks good{opinion(choice)}")

    def _fen(self) -> None:
        print(self.board.fen())

    def _resign(self) -> None:
        self.result = "0-1" if self.own_white else "1-0"
        print(f"You resign: {self.result}")

    def as_game(self) -> PgnGame:
        """The game so far, for PGN."""
        names = ("you", self.opponent.name) if self.own_white else (self.opponent.name, "you")
        today = f"{datetime.date.today():%Y.%m.%d}"
        headers = {"Event": "ranks chess play", "Date": today, "White": names[0], "Black": names[1]}
        fen = None if self._start_fen == Board().fen() else self._start_fen
        return PgnGame(headers, fen, tuple(self.board.moves), {}, self.result or "*")


def read_move(board: Board, text: str) -> int:
    """Parse a move in UCI notation or SAN. Raises ValueError with the reason."""
    with contextlib.suppress(ValueError):
        return board.parse_uci(text.lower())
    return parse_san(board, text)


def opinion(choice: Choice) -> str:
    """The score of a move, for the side that makes it: ` (+0.35, depth 6)`."""
    if choice.mate_in is not None:
        return f" (mate in {choice.mate_in})" if choice.mate_in > 0 else f" (mated in {-choice.mate_in})"
    return "" if choice.score_cp is None else f" ({choice.score_cp / 100:+.2f}, depth {choice.depth})"


def explain(outcome: Outcome) -> str:
    """How the game ended, as a sentence."""
    winner = {"1-0": "White wins, ", "0-1": "Black wins, "}.get(outcome.result, "")
    return f"{MEANINGS[outcome.reason]}. {winner}{outcome.result}"


def terminal_style() -> Style:
    """Colours on a terminal that has them, else Unicode if stdout can encode it, else letters."""
    if not (sys.stdout.encoding or "").lower().startswith("utf"):
        return "letters"
    colours = sys.stdout.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return "colours" if colours else "unicode"
