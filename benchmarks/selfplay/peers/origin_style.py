"""The self-play of chess-snn-rl as it is: batch 1, python-chess, SpikingJelly.

    python origin_style.py --source chess-snn-rl --cores 0

`--source`: a clone of github.com/andrewhamara/chess-snn-rl. Its SelfPlayEngine plays with its untrained ChessSNN
(T = 16, 64-128-256 channels) on the CPU, with as many threads as there are cores in --cores.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from nets import MAX_PLIES
from pace import Pace, keep_to, missing, versions


def play(asked: argparse.Namespace, pace: Pace) -> None:
    """Games one after the other, for ever."""
    sys.path.insert(0, str(asked.source))
    import torch
    from src.models.chess_snn import ChessSNN
    from src.training.self_play import SelfPlayEngine

    torch.set_num_threads(asked.cores.count(",") + 1)
    torch.manual_seed(1)
    model = ChessSNN()
    select_action, plies = model.select_action, 0

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal plies
        found = select_action(*args, **kwargs)
        plies += 1
        if plies == 10:
            pace.ready(version=versions("torch", "spikingjelly", "chess"), threads=torch.get_num_threads())
        elif plies > 10:
            pace.add(plies=1, evaluations=1)
        return found

    model.select_action = counted
    engine = SelfPlayEngine(model, "cpu", MAX_PLIES)
    while True:
        pace.count(games=1, game_plies=engine.play_game()["move_count"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--cores", default="0")
    asked = parser.parse_args()
    keep_to(asked.cores)
    os.environ["OMP_NUM_THREADS"] = str(asked.cores.count(",") + 1)
    try:
        play(asked, Pace())
    except ImportError as error:
        missing(error)


if __name__ == "__main__":
    main()
