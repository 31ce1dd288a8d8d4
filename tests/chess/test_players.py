"""The players of our own: legal, the same for the same seed, and no worse than they are said to be."""

from __future__ import annotations

import math
import random
import threading
import time

import numpy as np
import pytest

from ranks.chess.board import Board, move_name
from ranks.chess.core.alphabeta_tree import MATE
from ranks.chess.core.evaluation import evaluations
from ranks.chess.fen import START_FEN
from ranks.chess.players.player import OVERHEAD_S, Choice, Clock, Info, Limits
from ranks.chess.players.time_plan import clock_plan, time_plan
from ranks.chess.players.tree_search import centipawns
from ranks.chess.players.words import PLAYERS, PlayerWord, make_player, nearest
from ranks.errors import UserError

OWN = ["random", "greedy", "minimax:2", "alphabeta:2", "alphabeta:3?evaluation=position", "mcts:100"]
HANGING_QUEEN = "rnb1kbnr/ppp2ppp/8/3q4/8/2N5/PPPP1PPP/R1BQKBNR w KQkq - 0 5"
MATES = {
    1: [
        "6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - 0 1",
        "r1bqkbnr/pppp1ppp/2n5/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 0 1",
        "rnbqkbnr/pppp1ppp/8/4p3/6P1/5P2/PPPPP2P/RNBQKBNR b KQkq - 0 2",
        "6rk/6pp/8/6N1/8/8/8/7K w - - 0 1",
        "5k2/5p2/4p2r/4P3/1P5P/PRP1Pq1B/5P2/3bK3 b - - 1 37",
        "3k4/p1p2p2/6BQ/1Pp5/P5qp/2p3PP/n1P4K/1R5R b - - 10 47",
        "rn2r3/pb3pBp/4q3/1pp4B/4Pk2/P2P4/2P1Q1PP/RN3K1R w - - 2 24",
        "r5nr/5b1k/p6p/1Pn1pP1P/2Q3P1/1PP5/1RK4R/2B5 w - - 3 28",
    ],
    2: [
        "kbK5/pp6/1P6/8/8/8/8/R7 w - - 0 1",
        "6k1/pp4p1/2p5/2bp4/8/P5Pb/1P3rrP/2BRRN1K b - - 0 1",
        "r2qkb1r/pp2nppp/3p4/2pNN1B1/2BnP3/3P4/PPP2PPP/R2bK2R w KQkq - 1 1",
        "2k4r/7p/4P2P/2p5/5q2/7K/8/2b5 b - - 2 37",
        "2r1b2k/8/8/8/1B5P/5P2/4r3/7K b - - 8 53",
        "8/7k/3p4/3P1p2/5N2/5BQ1/P3P3/4K3 w - - 1 46",
        "4R3/7k/8/7B/3N4/4PK1P/8/8 w - - 1 50",
        "6k1/8/P6K/8/5N2/6P1/5R2/8 w - - 27 70",
    ],
    3: [
        "3nK3/8/8/5k2/3p4/1p6/8/3r4 b - - 11 72",
        "8/2N5/3p4/1P3k2/2QP4/2N5/4P3/5K2 w - - 3 35",
        "2k5/p1p4n/p1P5/6p1/8/K7/6rr/8 b - - 5 59",
        "5k2/8/1p1r4/3r3p/8/8/8/1K6 b - - 63 78",
        "8/8/8/2k5/8/2K1p3/3p4/4r3 b - - 1 78",
        "8/8/p5N1/P7/1k6/5n2/6p1/2K5 b - - 1 65",
        "6R1/8/4P3/K7/p7/P7/8/7k w - - 27 81",
        "7k/8/8/6K1/8/P4R2/8/8 w - - 21 61",
    ],
}
"""Positions by the moves to mate; that it is forced, and none is shorter, is checked by trying everything."""


def played(word: str, seed: int, plies: int = 40) -> list[int]:
    """The moves of a game of a player against itself."""
    player = make_player(word)
    player.new_game(seed)
    board = Board()
    while board.ply < plies and board.outcome() is None:
        board.push(player.choose(board.copy(), Limits()).move)
    player.close()
    return board.moves


def random_boards(number: int, seed: int, plies: tuple[int, int], most_men: int = 32) -> list[Board]:
    """Positions of random games that are not over, with all moves that led there; where few men are asked for, every
    second move takes one if it can."""
    draw = random.Random(seed)
    boards: list[Board] = []
    while len(boards) < number:
        board = Board()
        for _ in range(draw.randint(*plies)):
            moves = board.legal_moves()
            men = int(board.words[6] | board.words[7])
            captures = [move for move in moves if men >> (move >> 6 & 63) & 1]
            board.push(
                draw.choice(captures if captures and men.bit_count() > most_men and draw.random() < 0.5 else moves)
            )
            if board.outcome():
                break
        else:
            if int(board.words[6] | board.words[7]).bit_count() <= most_men:
                boards.append(board)
    return boards


def choose(word: str, board: Board, limits: Limits | None = None) -> Choice:
    player = make_player(word)
    player.new_game(1)
    choice = player.choose(board, limits or Limits())
    player.close()
    return choice


@pytest.mark.parametrize("word", OWN)
def test_games_are_legal_and_follow_from_the_seed(word: str) -> None:
    first = played(word, seed=7)  # an illegal move raises ValueError
    assert len(first) == 40
    assert first == played(word, seed=7)
    if not word.startswith("mcts"):
        assert first != played(word, seed=8)


@pytest.mark.parametrize("word", OWN)
def test_a_player_leaves_the_board_as_it_was_and_can_be_closed_twice(word: str) -> None:
    board = random_boards(1, seed=3, plies=(20, 30))[0]
    before = board.fen(), board.moves.copy(), board.rows.copy()
    player = make_player(word)
    assert player.name == word
    player.new_game(0)
    assert player.choose(board, Limits()).move in board.legal_moves()
    assert (board.fen(), board.moves) == before[:2]
    assert (board.rows == before[2]).all()
    player.close()
    player.close()


def test_random_player_gives_every_move_its_share() -> None:
    player = make_player("random")
    board = Board()
    counts = dict.fromkeys(board.legal_moves(), 0)
    for seed in range(4000):
        player.new_game(seed)
        counts[player.choose(board, Limits()).move] += 1
    chi_square = sum((count - 200) ** 2 / 200 for count in counts.values())
    assert chi_square < 45  # 19 degrees of freedom: one correct player in a thousand is refused


def test_greedy_takes_what_is_worth_most_and_mates() -> None:
    assert move_name(choose("greedy", Board(HANGING_QUEEN)).move) == "c3d5"
    assert move_name(choose("greedy", Board("4k3/1P6/8/8/8/8/8/4K3 w - - 0 1")).move) == "b7b8q"
    for fen in MATES[1]:
        choice = choose("greedy", Board(fen))
        board = Board(fen)
        board.push(choice.move)
        assert board.outcome() is not None
        assert choice.mate_in == 1


@pytest.mark.parametrize("word", ["minimax:2", "alphabeta:2", "alphabeta:3?evaluation=position"])
def test_two_plies_keep_the_queen(word: str) -> None:
    board = Board("r1bqkb1r/pppp1ppp/2n2n2/4p2Q/2B1P3/8/PPPP1PPP/RNB1K1NR w KQkq - 4 4")
    for seed in range(10):
        player = make_player(word)
        player.new_game(seed)
        after = board.copy()
        after.push(player.choose(board, Limits()).move)
        white_queen = int(after.words[4] & after.words[6])
        taken = [move for move in after.legal_moves() if white_queen >> (move >> 6 & 63) & 1]
        assert not taken or move_name(after.moves[-1]) == "h5f7"


def evaluated(board: Board, positional: bool) -> int:
    scores_cp = np.zeros(1, np.int64)
    evaluations(board.rows[-1:].copy(), positional, scores_cp)
    return int(scores_cp[0])


def test_evaluation_by_hand_and_from_both_sides() -> None:
    assert evaluated(Board(), True) == evaluated(Board(), False) == 0
    rook_up = Board("4k3/8/8/8/8/8/8/R3K3 w - - 0 1")
    assert evaluated(rook_up, False) == 500
    assert evaluated(rook_up, True) == 500 + 0 + (-30) - (-30)
    pawn_on_seventh = Board("4k3/8/8/8/8/8/p7/4K3 b - - 0 1")
    assert evaluated(pawn_on_seventh, True) == 100 + 50
    knight_in_the_centre = Board("4k3/8/8/8/3N4/8/8/4K3 b - - 0 1")
    assert evaluated(knight_in_the_centre, True) == -(320 + 20)
    with_queens = Board("q3k3/8/8/8/8/8/8/Q3K2R w - - 0 1")  # white has more than a queen: no endgame
    assert evaluated(with_queens, True) == 500 + (-20 + 0) + 0 - (-20 + 0)
    for board in random_boards(20, seed=1, plies=(10, 60)):
        mirrored = Board(mirror(board.fen()))
        assert evaluated(board, True) == evaluated(mirrored, True)
        assert evaluated(board, False) == evaluated(mirrored, False)


def mirror(fen: str) -> str:
    """The same position with colours exchanged."""
    rows, side, castling, en_passant, *clocks = fen.split()
    rows = "/".join(reversed(rows.swapcase().split("/")))
    if en_passant != "-":
        en_passant = en_passant[0] + str(9 - int(en_passant[1]))
    return " ".join([rows, "b" if side == "w" else "w", castling.swapcase(), en_passant, *clocks])


class Minimax:
    """The slow twin: all moves to a depth, by the rules of the board, captures played out from there. No bounds at all
    but a memory of leaves by position, which no repetition reaches."""

    def __init__(self, positional: bool, quiescence: bool) -> None:
        self.positional, self.quiescence = positional, quiescence

    def value(self, board: Board, depth: int, ply: int = 0) -> int:
        outcome = board.outcome()
        if ply and outcome:
            return ply - MATE if outcome.reason == "checkmate" else 0
        if depth < 0 or (depth == 0 and not (self.quiescence and board.in_check)):
            return self.leaf(board, ply)
        best = -10 * MATE
        for move in board.legal_moves():
            board.push(move)
            best = max(best, -self.value(board, depth - 1, ply + 1))
            board.pop()
        return best

    def leaf(self, board: Board, ply: int) -> int:
        best = evaluated(board, self.positional)
        for move in self.captures(board):
            board.push(move)
            outcome = board.outcome()
            won = MATE - ply - 1 if outcome and outcome.reason == "checkmate" else 0
            best = max(best, won if outcome else -self.leaf(board, ply + 1))
            board.pop()
        return best

    def captures(self, board: Board) -> list[int]:
        if not self.quiescence:
            return []
        men = int(board.words[6] | board.words[7])
        pawns, en_passant = int(board.words[0]), int(board.words[10])
        return [
            move
            for move in board.legal_moves()
            if men >> (move >> 6 & 63) & 1
            or move >> 12
            or (en_passant >> (move >> 6 & 63) & 1 and pawns >> (move & 63) & 1)
        ]


def mates(board: Board, moves: int) -> bool:
    """Whether the side to move can force mate in so many moves: everything is tried."""
    for move in board.legal_moves():
        board.push(move)
        outcome = board.outcome()
        forced = outcome.reason == "checkmate" if outcome else moves > 1 and loses(board, moves - 1)
        board.pop()
        if forced:
            return True
    return False


def loses(board: Board, moves: int) -> bool:
    """Whether every move of the side to move lets it be mated in so many moves."""
    for move in board.legal_moves():
        board.push(move)
        mated = board.outcome() is None and mates(board, moves)
        board.pop()
        if not mated:
            return False
    return True


def value_of(choice: Choice) -> int:
    if choice.mate_in is None:
        assert choice.score_cp is not None
        return choice.score_cp
    return MATE - 2 * choice.mate_in + 1 if choice.mate_in > 0 else -MATE - 2 * choice.mate_in


@pytest.mark.parametrize("word", ["alphabeta:{}", "alphabeta:{}?evaluation=position", "minimax:{}"])
@pytest.mark.parametrize(("depth", "number", "most_men"), [(1, 100, 14), (2, 30, 9), (3, 12, 6)])
def test_alpha_beta_is_minimax(word: str, depth: int, number: int, most_men: int) -> None:
    twin = Minimax(positional=word != "alphabeta:{}", quiescence=word.startswith("alphabeta"))
    for board in random_boards(number, seed=depth, plies=(60, 120), most_men=most_men):
        choice = choose(word.format(depth), board)
        assert value_of(choice) == twin.value(board, depth), board.fen()
        board.push(choice.move)
        if not board.outcome():
            assert -twin.value(board, depth - 1, ply=1) == value_of(choice), board.fen()


def test_threads_change_no_score() -> None:
    running = threading.active_count()
    one, three = make_player("alphabeta:5?evaluation=position"), make_player("alphabeta:5?evaluation=position")
    for board in random_boards(12, seed=9, plies=(10, 60)):
        assert value_of(one.choose(board, Limits())) == value_of(three.choose(board, Limits(threads=3))), board.fen()
    three.choose(Board(), Limits(threads=2, movetime_s=0.02))
    assert one.choose(Board(), Limits()) == one.choose(Board(), Limits(threads=1))
    one.close()
    three.close()
    assert threading.active_count() == running


def test_alpha_beta_is_minimax_where_repetition_and_fifty_moves_matter() -> None:
    """Kings and rooks that have wandered, so that many positions have stood once or twice, and late clocks."""
    draw = random.Random(5)
    twin = Minimax(positional=True, quiescence=True)
    drawn = 0
    for number in range(20):
        board = Board(f"7k/8/8/8/8/8/1p6/K7 w - - {0 if number % 2 else 93 + number % 5} 80")
        while board.ply < 4 * (number % 3):
            there = draw.choice(board.legal_moves())
            back = (there >> 6 & 63) | (there & 63) << 6
            reply = next((m for m in board.legal_moves() if m == back), None)
            board.push(reply or there)
            if board.outcome():
                board.pop()
                break
        plain = Minimax.value(twin, board, 5)
        assert value_of(choose("alphabeta:5?evaluation=position", board)) == plain, (board.fen(), board.moves)
        drawn += plain == 0
    assert drawn


@pytest.mark.parametrize("moves", MATES)
def test_mates_are_found_and_are_the_shortest(moves: int) -> None:
    for fen in MATES[moves]:
        board = Board(fen)
        assert mates(board, moves), fen
        assert moves == 1 or not mates(board, moves - 1), fen
        for word in (f"alphabeta:{2 * moves - 1}", f"minimax:{2 * moves - 1}", "alphabeta:8?evaluation=position"):
            choice = choose(word, board)
            assert choice.mate_in == moves, (word, fen)
            assert choice.score_cp is None
            after = board.copy()
            for move in choice.pv:
                after.push(move)
            assert choice.pv[0] == choice.move
            outcome = after.outcome()
            assert len(choice.pv) < 2 * moves - 1 or (outcome is not None and outcome.reason == "checkmate")
            reply = board.copy()
            reply.push(choice.move)
            if moves > 1:
                assert choose(word.replace(str(2 * moves - 1), str(2 * moves)), reply).mate_in == 1 - moves


def test_tree_search_finds_a_mate_and_takes_a_queen() -> None:
    for fen in MATES[1]:
        assert choose("mcts:800", Board(fen)).move in [m for m in Board(fen).legal_moves() if after(fen, m)]
    choice = choose("mcts:400", Board(HANGING_QUEEN))
    assert move_name(choice.move) == "c3d5"
    assert choice.nodes <= 400


def after(fen: str, move: int) -> bool:
    board = Board(fen)
    board.push(move)
    return board.outcome() is not None


def test_tree_search_follows_the_game_and_a_game_of_another_kind() -> None:
    player = make_player("mcts:100")
    player.new_game(0)
    board = Board()
    for _ in range(6):
        board.push(player.choose(board, Limits()).move)
    board.pop()
    board.pop()
    other = Board("8/8/8/8/3k4/8/1r6/K7 w - - 0 1")
    for position in (board, other, board):
        assert player.choose(position, Limits()).move in position.legal_moves()


def test_centipawns_of_an_expected_outcome() -> None:
    assert centipawns(0.0) == 0
    assert centipawns(2 * 10 / 11 - 1) == 400
    assert -5000 < centipawns(-1.0) == -centipawns(1.0) < -4000


@pytest.mark.parametrize("word", ["alphabeta:64?evaluation=position", "minimax:64", "mcts:100000"])
def test_limits_end_a_search(word: str) -> None:
    player = make_player(word)
    player.new_game(0)
    board = Board()

    def seconds(limits: Limits) -> float:
        began_s = time.perf_counter()
        assert player.choose(board, limits).move in board.legal_moves()
        return time.perf_counter() - began_s

    assert seconds(Limits(should_stop=lambda: True)) < 0.1
    assert seconds(Limits(infinite=True, should_stop=lambda: True)) < 0.1
    assert 0.04 < seconds(Limits(movetime_s=0.05)) < 0.3
    assert seconds(Limits(clock=Clock(0.01, 60))) < 0.1
    assert seconds(Limits(clock=Clock(1.0, 60))) < 0.5
    stop = threading.Event()
    threading.Timer(0.1, stop.set).start()
    assert 0.09 < seconds(Limits(infinite=True, should_stop=stop.is_set)) < 0.4
    assert player.choose(board, Limits(nodes=1)).move in board.legal_moves()
    for nodes in (1, 777):
        player.new_game(0)
        first = player.choose(board, Limits(nodes=nodes))
        assert first.nodes <= nodes
        player.new_game(0)
        assert player.choose(board, Limits(nodes=nodes)) == first
    player.close()


def test_depth_is_a_limit_of_its_own_and_of_the_word() -> None:
    board = Board(HANGING_QUEEN)
    assert choose("alphabeta:4", board, Limits(depth=2)).depth == 2
    assert choose("alphabeta:3", board, Limits(depth=9)).depth == 3
    assert choose("alphabeta:3", board, Limits(depth=9)).score_cp == choose("alphabeta:3", board).score_cp


@pytest.mark.parametrize("word", ["alphabeta:3?evaluation=position", "mcts:200"])
def test_information_while_searching(word: str) -> None:
    said: list[Info] = []
    board = Board(HANGING_QUEEN)
    choice = choose(word, board, Limits(num_lines=3, on_info=said.append))
    last = said[-3:]
    assert [info.line for info in last] == [1, 2, 3]
    assert last[0].pv == choice.pv
    assert last[0].score_cp == choice.score_cp
    assert len({info.pv[0] for info in last}) == 3
    if word.startswith("alpha"):
        scores = [info.score_cp for info in last if info.score_cp is not None]
        assert scores == sorted(scores, reverse=True)
        assert [info.depth for info in said] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
        assert choose(word, board).score_cp == choice.score_cp
    for info in said:
        line = board.copy()
        for move in info.pv:
            line.push(move)
        assert info.elapsed_s >= 0
    assert [info.nodes for info in said] == sorted(info.nodes for info in said)


def test_lines_are_no_more_than_legal_moves() -> None:
    said: list[Info] = []
    board = Board("8/8/8/8/3k4/8/1r6/K7 w - - 0 1")
    assert len(board.legal_moves()) < 5
    choose("alphabeta:2", board, Limits(num_lines=5, on_info=said.append))
    assert max(info.line for info in said) == len(board.legal_moves())


@pytest.mark.parametrize(("base_s", "increment_s"), [(2.0, 0.02), (10.0, 0.1), (1.0, 0.02), (60.0, 1.0)])
@pytest.mark.parametrize("lost_share", [0.0, 0.25, 0.9])
def test_time_is_kept_over_a_long_game(base_s: float, increment_s: float, lost_share: float) -> None:
    """However long the game and whatever part of the increment each move loses, the reserve is hardly touched."""
    left_s = base_s
    for _ in range(500):
        plan = clock_plan(Clock(left_s, 9.0, increment_s))
        assert 0 <= plan.begin_s <= plan.enough_s <= plan.most_s < left_s
        left_s += increment_s - plan.enough_s - lost_share * increment_s
        assert left_s > 15 * OVERHEAD_S - increment_s


def test_time_without_an_increment_lasts() -> None:
    left_s, moves = 5.0, 0
    while left_s > 0 and moves < 200:
        left_s -= clock_plan(Clock(left_s, 9.0)).enough_s + 0.001
        moves += 1
    assert moves == 200


def test_time_plans_at_the_edges() -> None:
    assert clock_plan(Clock(10.0, 10.0, 0.0, moves_to_go=1)).most_s < 10.0 - 0.03
    assert clock_plan(Clock(-1.0, 1.0)).most_s <= 0.001
    assert clock_plan(Clock(2.0, 2.0, overhead_s=0.5)).most_s <= 0.001
    assert clock_plan(Clock(2.0, 2.0, overhead_s=0.0)).enough_s == 2.0 / 30
    assert time_plan(Limits()).most_s == time_plan(Limits(infinite=True, clock=Clock(1, 1))).most_s == math.inf
    assert time_plan(Limits(movetime_s=3.0)) == (3.0, 3.0, 3.0)


@pytest.mark.parametrize(
    ("word", "found", "do"),
    [
        ("alphabet:3", "no player 'alphabet'", "did you mean alphabeta?"),
        ("Greedy", "no player 'Greedy'", "did you mean greedy?"),
        ("", "no player ''", "random, greedy, minimax:DEPTH"),
        ("stockfish", "no player 'stockfish'", "uci:COMMAND"),
        ("random:3", "'3' behind the name", "write random"),
        ("greedy?x=1", "no options", "write greedy"),
        ("minimax", "a number is missing", "minimax:DEPTH"),
        ("minimax:two", "'two' is not a number", "minimax:2"),
        ("alphabeta:0", "'0' is not a number from 1 to 64", "alphabeta:DEPTH"),
        ("alphabeta:3?evaluate=position", "no option 'evaluate'", "did you mean evaluation?"),
        ("alphabeta:3?evaluation=postion", "no evaluation 'postion'", "did you mean position?"),
        ("alphabeta:3?evaluation", "'evaluation' is not an option with a value", "Option=Value"),
        ("mcts:1000000", "not a number from 1 to 100000", "mcts:800"),
        ("mcts:10?x=2", "no options", "write mcts:10"),
    ],
)
def test_words_that_mean_no_player(word: str, found: str, do: str) -> None:
    with pytest.raises(UserError) as error:
        make_player(word)
    assert f"'{word}'" in error.value.asked
    assert found in error.value.found
    assert do in error.value.do


def test_words_are_taken_apart() -> None:
    word = PlayerWord.parse("uci:/opt/a b/engine --fast?Move%20Overhead=50&Hash=16")
    assert (word.name, word.argument) == ("uci", "/opt/a b/engine --fast")
    assert word.options == {"Move Overhead": "50", "Hash": "16"}
    assert set(PLAYERS) == {"random", "greedy", "minimax", "alphabeta", "mcts", "uci"}
    assert nearest("hsh", ["Hash", "Threads"], "x") == "did you mean Hash? (x)"
    assert nearest("qqqq", ["Hash", "Threads"], "x") == "x"
    assert Board().fen() == START_FEN
