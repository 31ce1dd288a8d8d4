"""UCI_Elo: how many nodes it means, and that a search keeps to them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ranks.chess.board import Board, move_to_uci
from ranks.chess.commands.players import make_player, parse_player, strength_of
from ranks.chess.players.player import Info, Limits
from ranks.chess.players.strength import FILE, Strength, read_strength
from ranks.chess.uci.lines import format_info
from ranks.errors import UserError
from tests.chess.uci.uci_conversation import Conversation

MEASURED = Strength((10, 100, 10_000), (500.5, 1000.0, 1800.9))


def test_nodes_lie_on_straight_lines_over_their_logarithm() -> None:
    assert (MEASURED.least, MEASURED.most) == (501, 1800)
    assert [MEASURED.nodes_for(elo) for elo in (500.5, 750.25, 1000, 1400.45, 1800.9)] == [10, 32, 100, 1000, 10_000]
    assert (MEASURED.nodes_for(0), MEASURED.nodes_for(3000)) == (10, 10_000)


@pytest.mark.parametrize(
    ("nodes", "elo"),
    [((1,), (1.0,)), ((1, 2), (1.0,)), ((2, 1), (1.0, 2.0)), ((1, 2), (2.0, 2.0)), ((0, 2), (1.0, 2.0))],
)
def test_points_that_do_not_rise_are_refused(nodes: tuple[int, ...], elo: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=r"points|rising|more|node"):
        Strength(nodes, elo)


def test_a_file_of_a_folder_and_damaged_ones(tmp_path: Path) -> None:
    assert read_strength(tmp_path / FILE, "asked") is None
    points = [{"nodes": 10, "elo": 500.5}, {"nodes": 100, "elo": 1000.0}, {"nodes": 10_000, "elo": 1800.9}]
    (tmp_path / FILE).write_text(json.dumps({"points": points}))
    assert strength_of(parse_player(f"engine:{tmp_path}")) == MEASURED
    assert strength_of(parse_player(f"engine:{tmp_path}?nodes=7")) is None, "its strength is fixed"
    assert strength_of(parse_player("random")) is None
    (tmp_path / "config.json").write_text('{"weights_sha256": "another"}')
    with pytest.raises(UserError, match="was measured with other weights"):
        strength_of(parse_player(f"engine:{tmp_path}"))
    (tmp_path / "config.json").unlink()
    for content in ("", "{}", '{"points": [1, 2]}', '{"points": [{"nodes": 1, "elo": 2}]}', '{"points": 3}'):
        (tmp_path / FILE).write_text(content)
        with pytest.raises(UserError, match="no file of strengths"):
            strength_of(parse_player(f"engine:{tmp_path}"))


def test_a_search_of_a_limited_strength_has_its_nodes_and_is_repeated() -> None:
    def nodes_of(lines: list[str]) -> int:
        return int(re.findall(r" nodes (\d+)", " ".join(lines))[-1])

    with Conversation(lambda: make_player("engine"), strength=MEASURED) as gui:
        announced = gui.ask("uci", "uciok")
        assert "option name UCI_LimitStrength type check default false" in announced
        assert "option name UCI_Elo type spin default 1800 min 501 max 1800" in announced
        assert "is not from 501 to 1800" in gui.ask("setoption name UCI_Elo value 2000", "info string")[-1]
        gui.send("setoption name UCI_Elo value 1000")
        gui.send("position startpos")
        assert nodes_of(gui.ask("go depth 5", "bestmove")) > 300, "the switch is off"
        gui.send("setoption name UCI_LimitStrength value true")
        limited = gui.ask("go movetime 60000", "bestmove")
        assert nodes_of(limited) <= 110
        assert nodes_of(gui.ask("go movetime 60000", "bestmove")) == nodes_of(limited), "nothing is kept between moves"
        gui.send("setoption name UCI_LimitStrength value false")
        assert nodes_of(gui.ask("go depth 5", "bestmove")) > 300


@pytest.mark.parametrize(
    "fen",
    [
        "rn2kbnr/pp2p1pp/1qpp4/5p2/6bP/P3P1R1/2PPQPP1/RNB1KBN1 w Qkq - 2 10",
        "r1b1n2r/p2p1kpp/1p2pp2/q1b5/2BPQP1P/1Pn1P3/P2B2P1/RN2K1NR b KQ - 1 15",
    ],
)
def test_a_search_of_a_limited_strength_is_that_of_the_matches(fen: str) -> None:
    """In which a player such as engine?nodes=1000 played: the table has its size, however large Hash is."""
    infos: list[Info] = []
    player = make_player(f"engine?nodes={MEASURED.nodes_for(1800)}")
    player.choose(Board(fen), Limits(on_info=infos.append))
    with Conversation(lambda: make_player("engine"), strength=MEASURED) as gui:
        gui.send("setoption name UCI_LimitStrength value true")
        gui.send("setoption name Hash value 64")
        gui.ask("go movetime 60000", "bestmove")
        gui.send(f"position fen {fen}")
        lines = gui.ask("go movetime 60000", "bestmove")
    printed = [re.sub(" nps .* pv", " pv", line) for line in lines if line.startswith("info depth")]
    found = [format_info(info, [move_to_uci(move) for move in info.pv], with_multipv=False) for info in infos]
    assert printed == [re.sub(" nps .* pv", " pv", line) for line in found]
