"""Games of self-play in chess: kinds of draws, and PGN that python-chess reads."""

from __future__ import annotations

import io
from dataclasses import replace

import chess.pgn
import numpy as np
import pytest
import torch
from torch import Tensor

from ranks.chess.board import Board, move_to_uci
from ranks.chess.core.rules import CHESS, DRAW_KINDS, draw_kind
from ranks.search import Search, SearchConfig
from ranks.search.evaluation import Evaluation, Leaves
from ranks.selfplay import Encoding, PlayedGame, SelfPlay, SelfPlayConfig
from ranks.selfplay.replay.game_moves import GameMoves
from ranks.workloads.chess_spiking.game_notation import format_pgn, notation
from tests.selfplay.fixtures import single_rank


class NoNet(torch.nn.Module):
    """All moves are equally likely, and the value is 0."""

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        return torch.zeros(len(planes), 2**16), torch.zeros(len(planes))


def board_after(moves: tuple[int, ...]) -> Board:
    board = Board()
    for move in moves:
        board.push(move)
    return board


def test_random_games_end_as_their_boards_say_and_their_pgn_is_read_again() -> None:
    encoding = Encoding(lambda positions: positions.num_moves_B[:, None])
    with single_rank() as world:
        source = SelfPlay(CHESS, encoding, 32, 24, SelfPlayConfig(search="none", max_plies=500), world)
        games = source.play(NoNet(), 0)
    results = games.results()
    counts = {f"drawn/{kind.replace(' ', '_')}": 0 for kind in DRAW_KINDS}
    values = games.records.value_P[games.records.full_P]
    for index, game in enumerate(GameMoves.of(games).games(0, values)):
        outcome = board_after(game.moves).outcome()
        if game.ending == "most plies":
            assert outcome is None
            assert games.draw_kind_N[index] == -1
        else:
            assert outcome is not None
            assert outcome.result == game.result
            if outcome.reason != "checkmate":
                counts[f"drawn/{outcome.reason.replace(' ', '_')}"] += 1
        if index % 10 == 0:
            check_pgn(game)
    assert {name: round(results[name] * len(games)) for name in counts} == counts
    assert sum(count > 0 for count in counts.values()) >= 3, "random games end in most of these ways"
    drawn = sum(results[name] for name in counts) + results["truncated"]
    assert abs(drawn - results["drawn"]) < 1e-9
    assert results["distinct_openings"] == len({game.moves[:8] for game in GameMoves.of(games).games(0, values)})


@pytest.mark.parametrize("simulations", [0, 64], ids=["new root", "root of a kept tree"])
def test_a_third_repetition_is_known_from_the_last_position(simulations: int) -> None:
    def evaluate(leaves: Leaves) -> Evaluation:
        share_B1 = 1 / np.maximum(leaves.num_moves_B, 1)[:, None]
        priors_BM = np.broadcast_to(share_B1, leaves.moves_BM.shape).astype(np.float32)
        return Evaluation(priors_BM, np.zeros(len(share_B1), np.float32))

    *line, last = moves_of(*2 * ["g1f3", "g8f6", "f3g1", "f6g8"])
    search = Search(CHESS, SearchConfig(simulations=64, reuse=True), num_games=1)
    search.set_root(0, 0, line)
    if simulations:
        search.run(evaluate, simulations)
    search.play([last])
    assert search.outcome()[0] == 0
    assert DRAW_KINDS[draw_kind(search.state(0))] == "threefold repetition"


def check_pgn(game: PlayedGame) -> None:
    text = format_pgn(game, "my_run")
    found = chess.pgn.read_game(io.StringIO(text))
    assert found is not None
    assert not found.errors
    assert [move.uci() for move in found.mainline_moves()] == [move_to_uci(move) for move in game.moves]
    assert found.headers["Result"] == game.result
    assert (found.headers["Slot"], found.headers["Number"]) == (str(game.slot), str(game.number))
    assert found.headers["Iteration"] == "1"
    assert found.headers["Weights"] == "0"
    assert [node.san() for node in found.mainline()] == notation(game.moves)


def test_how_a_game_ended_is_its_last_comment() -> None:
    fools_mate = tuple(moves_of("f2f3", "e7e5", "g2g4", "d8h4"))
    game = PlayedGame(3, 7, 12, fools_mate, (10, 10, 10, 10), (None, 0.25, -0.5, 1.0), -1, "rules")
    assert format_pgn(game, "run").endswith("1. f3 e5 {+0.25} 2. g4 {-0.50} 2... Qh4# {+1.00, Black mates} 0-1\n")
    assert '[Round "3.7"]' in format_pgn(game, "run")
    two = replace(game, moves=fools_mate[:2], weights=(10, 10), values=(None, None))
    resigned = format_pgn(replace(two, outcome=1, ending="resigned"), "run")
    assert resigned.endswith("1. f3 e5 {Black resigns} 1-0\n")
    longest = format_pgn(replace(two, outcome=0, ending="most plies"), "run")
    assert longest.endswith("1. f3 e5 {Draw by length: 2 plies} 1/2-1/2\n")
    assert '[Termination "adjudication"]' in longest


def test_a_comment_says_where_other_weights_chose_the_moves() -> None:
    game = PlayedGame(0, 0, 12, tuple(moves_of("f2f3", "e7e5", "g2g4")), (9, 11, 11), (None, 0.25, None), 1, "resigned")
    text = format_pgn(game, "run")
    assert '[White "run, weights 9-11"]' in text
    assert text.endswith("1. f3 e5 {+0.25, weights 11} 2. g4 {White resigns} 1-0\n")


def moves_of(*texts: str) -> list[int]:
    board = Board()
    for text in texts:
        board.push(board.parse_uci(text))
    return board.moves
