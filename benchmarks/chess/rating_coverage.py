"""Coverage of the 95 % intervals of ladder ratings, and how often equal players are called
separated.

    python -m benchmarks.chess.rating_coverage [--pools 1000]      about four minutes; any load, no timings

A simulation: each pool is a round robin of seven players of known strength, in one of five worlds.
In the first, games are independent. In the second, one random number decides both games of a pair
in 60 % of the openings. In the third, the share of draws depends on the pairing, against the model.
In the last two, each pairing has only 20 or 8 pairs. In the first two worlds neighbours also play
until they are separated (--until-separated). Two of them are equals, which may be called separated
in at most 5 % of all pools.
"""

# P pairs of games; 3 = points of white in halves

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from benchmarks.measure import origin, write_result
from ranks.chess.match.standings import rate
from ranks.rating.crosstable import Crosstable, Points
from ranks.rating.davidson import outcome_probabilities
from ranks.rating.elo import ELO_PER_NAT

ELO = {"A": 0.0, "B": 150.0, "C": 220.0, "D": 400.0, "E": 480.0, "F": 600.0, "G": 900.0}
FIRST_MOVE_ELO = 35.0
EQUALS = {"A": 0.0, "B": 0.0, "C": 300.0}
LOOKS = [10 * 2**look for look in range(7)]
"""Pairs: --games-per-pair 20 --until-separated 1280."""


@dataclass(frozen=True)
class World:
    """How the games of a simulated pool come about."""

    name: str
    pairs: int = 60
    """Of games in each pairing."""
    shared: float = 0.0
    """Share of openings that decide both games with the same random number."""
    draws_vary: bool = False
    """nu from 0.2 to 3.2 by who meets; the fit has one nu for all."""


WORLDS = (
    World("independent games"),
    World("dependent games in a pair", shared=0.6),
    World("draws unlike the model", draws_vary=True),
    World("few games", pairs=20),
    World("very few games", pairs=8),
)


def pool(world: World, seed: int) -> Crosstable:
    """One round robin."""
    rng = np.random.default_rng(seed)
    table = Crosstable()
    for number, (first, second) in enumerate(itertools.combinations(ELO, 2)):
        nu = 0.2 * 2 ** (number % 5) if world.draws_vary else 0.8
        uniform_3P = rng.random((3, world.pairs))
        for white, black in pairs_of_games(uniform_3P, ELO[first] - ELO[second], world.shared, nu):
            table.add(first, second, white, black)
    return table


def pairs_of_games(
    uniform_3P: np.ndarray, ahead_elo: float, shared: float, nu: float = 0.8
) -> Iterator[tuple[Points, Points]]:
    """The first player's points with white and with black in each pair, from uniform numbers."""
    uniform_P, other_P, shared_P = uniform_3P
    white_P = points(uniform_P, FIRST_MOVE_ELO + ahead_elo, nu)
    black_P = 2 - points(np.where(shared_P < shared, uniform_P, other_P), FIRST_MOVE_ELO - ahead_elo, nu)
    return zip(white_P.tolist(), black_P.tolist(), strict=True)


def points(uniform_P: np.ndarray, advantage_elo: float, nu: float) -> np.ndarray:
    """int64[P]: white's points, from uniform numbers."""
    chance_3 = outcome_probabilities(np.array(advantage_elo / ELO_PER_NAT), nu)
    return np.searchsorted(chance_3.cumsum()[:2], uniform_P)


def cover(world: World, pools: int) -> dict[str, Any]:
    """Share of intervals that hold the truth, their mean width, and the mean error, over `pools`
    round robins."""
    mean = sum(ELO.values()) / len(ELO)
    held: dict[str, list[bool]] = {"rating": [], "neighbours": [], "first move": []}
    widths, errors = [], []
    for seed in range(pools):
        found = rate(pool(world, seed), {}).ratings
        for player, elo in ELO.items():
            interval = found.rating(player)
            held["rating"].append(interval.low <= elo - mean <= interval.high)
        for lower, upper in itertools.pairwise(ELO):
            interval = found.difference(upper, lower)
            held["neighbours"].append(interval.low <= ELO[upper] - ELO[lower] <= interval.high)
            widths.append(interval.high - interval.low)
            errors.append(interval.value - (ELO[upper] - ELO[lower]))
        held["first move"].append(found.first_move.low <= FIRST_MOVE_ELO <= found.first_move.high)
    shares = {what: round(float(np.mean(values)), 4) for what, values in held.items()}
    return {
        **asdict(world),
        "pools": pools,
        "covered": shares,
        "neighbours_width_elo": round(float(np.mean(widths)), 2),
        "neighbours_mean_error_elo": round(float(np.mean(errors)), 2),
    }


def equals_separated(world: World, level_for: int, seed: int) -> bool:
    """Whether two equals are called separated at one of LOOKS, at the level for so many looks."""
    rng = np.random.default_rng(seed)
    table = Crosstable()
    close = list(itertools.combinations(EQUALS, 2))
    for pairs in LOOKS:
        for first, second in close:
            more = pairs - int(table.between(first, second).sum())
            for points_2 in pairs_of_games(rng.random((3, more)), EQUALS[first] - EQUALS[second], world.shared):
                table.add(first, second, *points_2)
        close = [(min(pair), max(pair)) for pair in rate(table, {}, level_for).unseparated]
        if ("A", "B") not in close:
            return True
    return False


def optional_stopping(world: World, pools: int) -> dict[str, Any]:
    """Share of pools in which two equals end as separated: as a ladder decides, and with 95 % at
    every look."""
    as_ladders_do, at_95 = (
        float(np.mean([equals_separated(world, level_for, seed) for seed in range(pools)]))
        for level_for in (len(LOOKS), 1)
    )
    found = {"equals_separated": round(as_ladders_do, 4), "equals_separated_with_95_at_each_look": round(at_95, 4)}
    return {**asdict(world), "pools": pools, "pairs_at_each_look": LOOKS, "players": EQUALS, **found}


def main() -> None:
    """Print a line for each world and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pools", type=int, default=1000)
    pools: int = parser.parse_args().pools
    found = []
    for world in WORLDS:
        found.append(cover(world, pools))
        shares = ", ".join(f"{what} {100 * share:.1f} %" for what, share in found[-1]["covered"].items())
        width = found[-1]["neighbours_width_elo"]
        print(f"{world.name}, {world.pairs} pairs a pairing: covered {shares}; neighbours' interval {width} Elo wide")
    stopped = []
    for world in WORLDS[:2]:
        stopped.append(optional_stopping(world, pools))
        ours, at_95 = (stopped[-1][key] for key in ("equals_separated", "equals_separated_with_95_at_each_look"))
        print(
            f"{world.name}, until separated: equals are called so in {100 * ours:.1f} % after {len(LOOKS)} looks "
            f"({100 * at_95:.1f} % if each were of 95 %)"
        )
    print(
        write_result(
            f"rating_coverage_{time.strftime('%Y-%m-%d')}",
            {**origin(), "elo": ELO, "first_move_elo": FIRST_MOVE_ELO, "worlds": found, "until_separated": stopped},
        )
    )


if __name__ == "__main__":
    main()
