"""Every wrong command line gets exit code 2 and one clear error: what was asked, what was found,
what to do."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

Refused = Callable[[Sequence[str]], str]
GC = ["train", "graph-coloring"]
SCALE = ["scale", "graph-coloring"]
MATCH = ["chess", "match", "--player", "random"]
NAME = "n" * 300
DIGITS = "9" * 5000
WITHOUT_A_RUN: dict[str, tuple[list[str], str]] = {
    "a run of 300 letters": (["evaluate", NAME], "no run nnn"),
    "a workload of 300 letters": (["train", NAME], "give a shorter name"),
    "a file of 300 letters": (["train", f"./{NAME}.py"], "File name too long"),
    "a new file of 300 letters": (["new", NAME], "File name too long"),
    "a script of 300 letters": (["launch", NAME], "File name too long"),
    "a player of 300 letters": ([*MATCH, "--player", NAME], "there is no player"),
    "an engine of 300 letters": ([*MATCH, "--player", f"uci:{NAME}"], "there is no program"),
    "a player with 5,000 digits": ([*MATCH, "--player", f"alphabeta:{DIGITS}"], "is not a number from"),
    "an engine with 5,000 digits": ([*MATCH, "--player", f"uci:x@{DIGITS}"], "there is no program"),
    "perft of 5,000 digits": (["chess", "perft", DIGITS], "is not a whole number"),
    "a doctor's flags with an open quote": (["doctor", "graph-coloring", "--only", "clock", "--train='"], "close the"),
    "flags to scale with an open quote": (["scale", "graph-coloring", "--ranks", "1", "--train='"], "close the quotes"),
    "a seed of 5,000 digits": ([*GC, "--seed", DIGITS], "is not a whole number"),
    "a seed of 64 bits": ([*GC, "--seed", str(1 << 63)], "is not a whole number of 64 bits"),
    "shares of 64 bits": ([*GC, "--shares", f"1,{1 << 63}"], "is not a whole number of 64 bits"),
    "5,000 digits of iterations": ([*GC, "--save-every", DIGITS], "not a length of time"),
    "5,000 digits of seconds": ([*GC, "--max-time", f"{DIGITS}s"], "not a length of time"),
    "endless shards": ([*GC, "--shards", "9223372036854775807"], "65,536 is the limit"),
    "endless threads": ([*GC, "--threads", "9223372036854775807"], "4,096 is the limit"),
    "endless GPUs": ([*GC, "--gpus", "9223372036854775807"], "--gpus 9223372036854775807"),
    "command": (["trian"], "did you mean train?"),
    "workload command": (["graph-coloring", "sovle"], "did you mean solve?"),
    "room": (["ches"], "did you mean chess?"),
    "chess command": (["chess", "ladr"], "did you mean ladder?"),
    "perft without a depth": (["chess", "perft"], "no value for DEPTH"),
    "perft backwards": (["chess", "perft", "-1"], "from 0 to 20"),
    "perft too deep": (["chess", "perft", "99"], "from 0 to 20"),
    "perft of a word": (["chess", "perft", "deep"], "'deep' is not a whole number"),
    "perft of no position": (["chess", "perft", "1", "--fen", "8/8"], "give six fields"),
    "proof": (["prove", "same-rnu", "graph-coloring"], "did you mean same-run?"),
    "no workload": (["train"], "graph-coloring"),
    "workload": (["train", "graph-colouring"], "did you mean graph-coloring?"),
    "file": (["train", "./missing.py"], "ranks new"),
    "flag": ([*GC, "--iteratoins", "5"], "did you mean --iterations?"),
    "flag with =": ([*GC, "--optim.rl=5"], "did you mean --optim.lr?"),
    "flag and a bad value": ([*GC, "--seed", "x", "--exat"], "did you mean --exact?"),
    "extra word": ([*GC, "quickly"], "no further argument"),
    "batch size": ([*GC, "--batch-size", "64"], "give --global-batch N"),
    "short lr": ([*GC, "--lr", "0.1"], "--optim.lr"),
    "no near flag": ([*GC, "--num-envs", "4"], "do: see ranks train graph-coloring --help"),
    "onnx of a workload without it": ([*GC[:1], "stock-trading", "--export", "onnx"], "has no example_inputs"),
    "iterations of a proof": (
        ["prove", "same-run", "graph-coloring", "--train=--preset demo --iterations 9"],
        "give it to ranks prove: --iterations 9",
    ),
    "a flag that a proof chooses": (
        ["prove", "survive", "graph-coloring", "--train=--ranks 2"],
        "the proof chooses --ranks for each of its runs",
    ),
    "whole number": ([*GC, "--seed", "x"], "'x' is not a whole number"),
    "number": ([*GC, "--optim.lr", "fast"], "'fast' is not a number"),
    "value left out": ([*GC, "--seed"], "no value for --seed"),
    "processes as torchrun has them": ([*GC, "--nproc-per-node", "2"], "give --ranks N"),
    "processes with underscores": ([*GC, "--nproc_per_node=2"], "give --ranks N"),
    "choice": ([*GC, "--precision", "fp8"], "'fp32', 'bf16', 'fp64'"),
    "gpu": ([*GC, "--gpus", "0,973"], "GPU"),
    "gpu words": ([*GC, "--gpus", "both"], "--gpus both"),
    "more ranks than shards": ([*GC, "--gpus", "none", "--ranks", "9", "--shards", "8"], "8 shards"),
    "no ranks": ([*GC, "--gpus", "none", "--ranks", "0"], "at least one rank"),
    "shares as words": ([*GC, "--shares", "5,x"], "'x' is not a whole number"),
    "shares all zero": ([*GC, "--shares", "0,0"], "shares"),
    "shares for other ranks": ([*GC, "--gpus", "none", "--ranks", "2", "--shares", "5,3,1"], "3 shares for 2 ranks"),
    "no shards": ([*GC, "--shards", "0"], "--shards 0"),
    "time without unit": ([*GC, "--max-time", "10"], "10m"),
    "save cadence": ([*GC, "--save-every", "often"], "--save-every often"),
    "preset": ([*GC, "--preset", "dmeo"], "did you mean demo?"),
    "config file": ([*GC, "--config", "missing.json"], "No such file"),
    "run name": ([*GC, "--name", "a b"], "letters"),
    "run name as a path": ([*GC, "--name", "../elsewhere"], "letters"),
    "evaluate without a run": (["evaluate"], "no value for RUN"),
    "unknown run": (["evaluate", "nothing"], "no run nothing"),
    "unknown run to report": (["report", "nothing"], "no run nothing"),
    "unknown run to watch": (["watch", "nothing"], "no run nothing"),
    "unknown run to compare": (["compare", "nothing", "more"], "no run nothing"),
    "unknown run to export": (["export", "nothing"], "no run nothing"),
    "unknown run to fingerprint": (["fingerprint", "nothing"], "no run nothing"),
    "name of a new file": (["new", "2fast"], "not a Python name"),
    "new file with the name of a package": (["new", "torch"], "would hide the Python module torch"),
    "new file with the name of a module of Python": (["new", "random.py"], "for example my_random"),
    "new file with the name of our package": (["new", "ranks"], "for example my_ranks"),
    "new file with a keyword": (["new", "class"], "not a Python name"),
    "launch without a script": (["launch", "--ranks", "2"], "no script"),
    "launch of a missing script": (["launch", "--gpus", "none", "missing.py"], "missing.py"),
    "launch flag": (["launch", "--rank", "2", "x.py"], "did you mean --ranks?"),
    "launch as torchrun": (["launch", "--nproc-per-node", "2", "x.py"], "give --ranks N"),
    "flag of runs": (["runs", "--jsno"], "did you mean --json?"),
    "a forecast of no GPUs": (["forecast", "graph-coloring", "--gpus", "0,1"], "numbers from 1 to 4,096"),
    "a forecast of too many GPUs": (["forecast", "graph-coloring", "--gpus", "1,99999"], "numbers from 1 to 4,096"),
    "a forecast of a word": (["forecast", "graph-coloring", "--gpus", "1,many"], "'many' is not a whole number"),
    "a forecast of fewer GPUs than none": (["forecast", "graph-coloring", "--gpus", "-2"], "numbers from 1 to 4,096"),
    "a forecast of unlike cards, one unknown": (["forecast", "graph-coloring", "--on", "l4+b20"], "mean B200?"),
    "a forecast of unlike cards, another count": (
        ["forecast", "graph-coloring", "--on", "l40s+l4", "--gpus", "4"],
        "--on names 2 cards",
    ),
    "a forecast on an unknown GPU": (["forecast", "graph-coloring", "--gpus", "1", "--on", "b20"], "mean B200?"),
    "a doctor of fewer GPUs than none": (["doctor", "--gpus", "-3"], "give --gpus 8"),
    "a doctor of too many GPUs": (["doctor", "--gpus", "99999"], "a number from 0 to 4,096"),
    "a GPU with no card": (["doctor", "--expect", "B200:0"], "--expect B200:8"),
    "a GPU without a number": (["doctor", "--expect", "B200:many"], "--expect B200:8"),
    "two numbers of GPUs": (["doctor", "--expect", "B200:8", "--gpus", "4"], "leave --gpus out"),
    "one node to compare": (["doctor", "--only", "nodes"], "nothing to be compared with"),
    "scaling of nothing": (["scale"], "no value for WORKLOAD"),
    "scaling on no counts": (SCALE, "give --gpus 1,2,4,8"),
    "scaling on zero ranks": ([*SCALE, "--ranks", "0,2"], "numbers from 1 to 4,096"),
    "scaling on one number of ranks": ([*SCALE, "--ranks", "1"], "two numbers at least are compared"),
    "scaling on more ranks than cores": ([*SCALE, "--ranks", "1,4096"], "would wait for each other's cores"),
    "scaling on more GPUs than there are": ([*SCALE, "--gpus", "1,4096"], "measure where they are"),
    "scaling on GPUs and cores": ([*SCALE, "--gpus", "1,2", "--ranks", "1,2"], "give one of them"),
    "scaling in no rounds": ([*SCALE, "--ranks", "1,2", "--rounds", "0"], "it is 1 or more"),
    "scaling in no time": ([*SCALE, "--ranks", "1,2", "--seconds", "0"], "a number above 0"),
    "scaling with a flag of each run": ([*SCALE, "--ranks", "1,2", "--train=--ranks 2"], "leave --ranks out"),
    "a micro-batch of none": ([*SCALE, "--micro-batch", "0,8"], "numbers from 1 on"),
    "two kinds of batches": ([*SCALE, "--micro-batch", "8", "--global-batch", "8"], "a measurement of its own"),
    "batches on several ranks": ([*SCALE, "--micro-batch", "8", "--ranks", "1,2"], "measured on one rank"),
    "shares of one rank": ([*SCALE, "--ranks", "1", "--shares", "auto"], "2 or more"),
    "shares by hand": ([*SCALE, "--ranks", "2", "--shares", "5,3"], "--shares 5,3"),
    "items without shares": ([*SCALE, "--ranks", "1,2", "--max-items", "8"], "it belongs to --shares auto"),
}


@pytest.mark.parametrize("case", WITHOUT_A_RUN)
def test_refused_before_anything_starts(
    case: str, refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    argv, answer = WITHOUT_A_RUN[case]
    assert answer in refused(argv)
    assert list(tmp_path.iterdir()) == []


CONFIG_FILES: dict[str, tuple[str, str]] = {
    "not JSON": ("{", "not JSON"),
    "no object": ("[1]", "does not hold a JSON object"),
    "unknown part": ('{"enigne": {}}', "did you mean engine?"),
    "unknown key": ('{"config": {"iteratoins": 3}}', "did you mean iterations?"),
    "unknown nested key": ('{"config": {"optim": {"weigth_decay": 3}}}', "did you mean weight_decay?"),
    "wrong type": ('{"config": {"iterations": "many"}}', "not a whole number"),
    "true is no number": ('{"config": {"optim": {"lr": true}}}', "not a number"),
    "wrong length": ('{"config": {"optim": {"betas": [0.9]}}}', "a list of 2"),
    "wrong choice": ('{"engine": {"precision": "fp8"}}', "one of fp32, bf16, fp64"),
    "another workload": ('{"workload": "chess"}', "of chess"),
    "no object inside": ('{"config": {"optim": 3}}', "not an object"),
    "impossible value": ('{"engine": {"shards": 0}}', "--shards 0"),
}


CONFIG_FILES |= {
    "a seed of 64 bits": (json.dumps({"engine": {"seed": 1 << 63}}), "not a whole number of 64 bits"),
    "a rate beyond all floats": (json.dumps({"config": {"optim": {"lr": 10**400}}}), "not a whole number of 64 bits"),
    "5,000 digits": (f'{{"engine": {{"seed": {DIGITS}}}}}', "is not JSON"),
    "no number": ('{"config": {"optim": {"lr": NaN}}}', "NaN is no number"),
    "nested 100,000 times": ('{"config":' * 100_000, "is not JSON"),
    "a null character": (json.dumps({"engine": {"runs_dir": "a\0b"}}), "text without null characters"),
    "no text": ("\xff\xfe", "is not JSON"),
}


@pytest.mark.parametrize("case", CONFIG_FILES)
def test_config_files_that_do_not_fit(case: str, refused: Refused, tmp_path: Path) -> None:
    text, answer = CONFIG_FILES[case]
    path = tmp_path / "settings.json"
    path.write_text(text)
    assert answer in refused([*GC, "--config", str(path)])


def test_a_file_that_ends_the_process(refused: Refused, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("import sys\n\nsys.exit(0)\n")
    assert "it calls sys.exit(0) while it is imported" in refused(["train", str(path), "--print-config"])
