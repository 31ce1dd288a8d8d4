"""`ranks chess play`: play against a player in the terminal."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Literal

from ranks.errors import UserError


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
        player: The opponent: random, greedy, minimax:2, alphabeta:4, mcts:800, uci:stockfish, ...
        colour: The colour that you play.
        fen: The position to start from; the default is the initial position.
        movetime: Seconds that the opponent has for a move.
        pgnout: File to which the game is appended, also if you quit before its end.
        seed: Seed of the opponent's random choices.
    """
    from ranks.chess.board import Board
    from ranks.chess.commands.players import make_player
    from ranks.chess.commands.terminal_game import COMMANDS, TerminalGame, terminal_style
    from ranks.chess.pgn import open_pgn, write_game
    from ranks.chess.players.player import Forfeit, Limits

    if not 0 < movetime < float("inf"):
        raise UserError(f"--movetime {movetime}", "this is no time to think", "give seconds above 0")
    board = Board(fen)
    with contextlib.ExitStack() as stack:
        pgn = stack.enter_context(open_pgn(pgnout)) if pgnout else None
        opponent = stack.enter_context(contextlib.closing(make_player(player)))
        try:
            opponent.new_game(seed)
        except Forfeit as fault:
            do = "run the engine's command by hand and read its output"
            raise UserError(f"--player {player}", f"the engine {fault}", do) from fault
        game = TerminalGame(board, opponent, colour == "white", Limits(movetime_s=movetime), terminal_style())
        print(f"You play {colour} against {player}. Type {COMMANDS}.")
        try:
            finished = game.play(input)
        finally:
            if pgn and board.moves:
                write_game(pgn, game.as_game())
                print(f"The game was added to {pgnout}")
    return 0 if finished else 1
