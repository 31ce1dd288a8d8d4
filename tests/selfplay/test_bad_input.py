"""What a person can get wrong with self-play ends with exit code 2 and one clear error, through the command line."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tests.damage import kinds
from tests.damage.cases import in_this_process

TOY = Path(__file__).parents[1] / "toys" / "tictactoe.py"
SMALL = ("--iterations", "1", "--slots", "8", "--games-per-iteration", "8", "--global-batch", "16", "--save-every", "1")


def train(workload: Path, folder: Path, *flags: str) -> tuple[int, str, str]:
    """`ranks train` in this process: exit code, output, errors."""
    place = ["--name", "run", "--runs-dir", str(folder), "--ranks", "1", "--threads", "1", "--hang-timeout", "none"]
    return in_this_process(["train", str(workload), *place, *SMALL, *flags])


def edited(folder: Path, **replacements: str) -> Path:
    """The toy with another game, value, policy or width, in a folder of its own: a module is imported once a path."""
    places = {
        "GAME": "from ranks.search import TICTACTOE\n",
        "VALUE": "torch.tanh(self.value(h))[:, 0]",
        "POLICY": "self.policy(h), ",
        "WIDTH": "nn.Linear(18, width)",
    }
    text = TOY.read_text()
    for name, new in replacements.items():
        assert places[name] in text
        text = text.replace(places[name], f"{places[name] if name == 'GAME' else ''}{new}")
    path = folder / str(len(list(folder.glob("*/game.py")))) / "game.py"
    path.parent.mkdir()
    path.write_text(text)
    return path


SEARCH = ("--selfplay.search", "gumbel", "--selfplay.simulations", "4")
OFF_POLICY = ("--replay.no-on-policy",)
FLAGS = [
    (("--slots", "0"), "0 slots", "give at least"),
    (("--games-per-iteration", "0"), "0 games in an iteration", "give 1 or more"),
    (("--selfplay.simulations", "0"), "--selfplay.simulations 0", "1 or more"),
    (("--selfplay.opening-plies", "9"), "--selfplay.opening-plies 9", "below --selfplay.max-plies"),
    (("--selfplay.opening-plies", "12"), "--selfplay.opening-plies 12", "below --selfplay.max-plies"),
    ((*OFF_POLICY, "--replay.positions", "15"), "a batch of 16 positions", "--replay.positions 16 or more"),
    ((*SEARCH, "--slots", "2000000000"), "2,000,000,000 slots on a rank", "fewer slots or fewer simulations"),
    ((*SEARCH, "--slots", "5000000", "--selfplay.simulations", "3000"), "trees and batches need", "GiB are free"),
]


@pytest.mark.parametrize(("flags", "asked", "do"), FLAGS, ids=[" ".join(flags[-2:]) for flags, _, _ in FLAGS])
def test_a_flag_out_of_range_is_one_error(flags: tuple[str, ...], asked: str, do: str, tmp_path: Path) -> None:
    code, _, err = train(TOY, tmp_path, *flags)
    assert code == 2, err
    assert asked in err
    assert do in err
    assert "Traceback" not in err


RULE = "TICTACTOE = TICTACTOE._replace({})\n"
FILES = [
    ({"GAME": RULE.format("has_chance=True")}, "self-play of tic-tac-toe", "chance or hidden information"),
    ({"GAME": RULE.format("has_hidden_information=True")}, "self-play of tic-tac-toe", "chance or hidden information"),
    ({"GAME": RULE.format("num_players=3")}, "self-play of tic-tac-toe", "it has 3 players"),
    (
        {"GAME": RULE.format("legal_moves=lambda *a: 12")},
        "its rule legal_moves is plain Python",
        "@kernel(LEGAL_MOVES)",
    ),
    ({"VALUE": "self.value(h)[:, 0] * torch.nan"}, "the net's output in self-play, iteration 1", "8 of 8 positions"),
    ({"POLICY": "self.policy(h) / 0, "}, "the net's output in self-play, iteration 1", "8 of 8 positions"),
    ({"POLICY": "self.policy(h)[:, :5], "}, "indices up to 8", "[8, 5]"),
]


@pytest.mark.parametrize(("replacements", "found", "do"), FILES, ids=map(str, range(len(FILES))))
def test_a_game_or_net_that_does_not_fit_is_one_error(
    replacements: dict[str, str], found: str, do: str, tmp_path: Path
) -> None:
    code, _, err = train(edited(tmp_path, **replacements), tmp_path)
    assert code == 2, err
    assert found in err
    assert do in err
    assert "Traceback" not in err


OTHER = [
    ({"GAME": RULE.format("name='Nim'")}, "self-play of Nim", "of tic-tac-toe"),
    ({"WIDTH": "nn.Linear(18, 2 * width), nn.Linear(2 * width, width)"}, "learner", "another --name"),
]


@pytest.mark.parametrize(("replacements", "found", "do"), OTHER, ids=["game", "net"])
def test_a_checkpoint_of_another_game_or_net_is_one_error_and_stays(
    replacements: dict[str, str], found: str, do: str, tmp_path: Path
) -> None:
    assert train(edited(tmp_path), tmp_path)[0] == 0
    before = {path: path.read_bytes() for path in (tmp_path / "run" / "checkpoints").rglob("*") if path.is_file()}
    code, _, err = train(edited(tmp_path, **replacements), tmp_path, "--iterations", "2")
    assert code == 2, err
    assert found in err
    assert do in err
    assert {path: path.read_bytes() for path in before} == before
    assert train(edited(tmp_path), tmp_path, "--iterations", "2")[0] == 0


def test_damaged_parts_are_counted_and_named_and_nothing_is_lost(tmp_path: Path) -> None:
    """Three parts; two damaged ones that the newest checkpoint names, a half-written one; then all damaged."""
    code, straight, err = train(TOY, tmp_path / "straight", *OFF_POLICY, "--iterations", "4")
    assert code == 0, err
    code, _, err = train(TOY, tmp_path, *OFF_POLICY, "--iterations", "3")
    assert code == 0, err
    parts = sorted((tmp_path / "run" / "kept" / "replay").iterdir())
    assert [path.name[:8] for path in parts] == ["00000000", "00000001", "00000002"]
    contents = [path.read_bytes() for path in parts]
    kinds.flipped_bit(parts[2], random.Random(0))
    half = parts[2].with_name(".tmp-00000003-1")
    half.write_bytes(contents[2][:100])
    code, out, err = train(TOY, tmp_path, *OFF_POLICY, "--iterations", "4")
    assert code == 0, err
    assert re.search(rf"1 of 3 kept files damaged: \S*{parts[2].name}", out + err)
    assert f"1 half-written kept file of a killed process removed: {half}" in out + err
    assert fingerprint(out) == fingerprint(straight)
    for path in parts[:2]:
        path.write_bytes(b"")
    code, out, err = train(TOY, tmp_path, *OFF_POLICY, "--iterations", "5")
    assert code == 2
    assert "2 of 4 kept files damaged" in err
    assert all(path.name in err for path in parts[:2])
    assert "put the damaged kept files back from a copy" in err
    for path, content in zip(parts[:2], contents, strict=False):
        path.write_bytes(content)
    assert train(TOY, tmp_path, *OFF_POLICY, "--iterations", "5")[0] == 0


def fingerprint(printed: str) -> str:
    """The fingerprint that a run prints at its end."""
    return re.findall(r"fingerprint +([0-9a-f]{64})", printed)[-1]
