"""Splits a study by animal, so that the test is of animals that training never saw.

Many random splits are compared. The best one has every class in every split, and then shares of the classes and groups
that are most alike. The result depends on the seed, the animals' names and their counts alone.

Legend: S random splits, U animals, C classes, G groups, 3 splits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from ranks.errors import UserError
from ranks.splitmix64 import GOLDEN_GAMMA_U64, mix
from ranks.workloads.video_behavior.annotations.frame_labels import Floats, Labels
from ranks.workloads.video_behavior.config import SPLITS
from ranks.workloads.video_behavior.study.class_table import ClassCounts, units_of
from ranks.workloads.video_behavior.study.study import Study

TRIES = 2000
SHARES = (0.6, 0.2, 0.2)
"""Of the animals, for train, val and test."""
SWAPS = 200
MAX_CELLS = 10_000_000
"""Of the arrays that compare splits."""


@dataclass(frozen=True)
class SplitStudy:
    """A study whose labelled videos all have a split, and what its user should know about it."""

    study: Study
    warnings: tuple[str, ...]


def split_study(
    study: Study,
    counts: ClassCounts,
    *,
    seed: int = 0,
    shares: Sequence[float] = SHARES,
    asked: str = "a split by animal",
) -> SplitStudy:
    """The study with a split for every video that has labels: the given one, or a new one where no row has any.

    `counts`: as from `counts_of_events`, or counted from frames. Videos without annotation stay without a split. Raises
    UserError where only some rows have a split, where there are fewer than three animals, and where a class cannot be
    in every split; the message names the class and its animals.
    """
    labelled = [number for number, video in enumerate(study.videos) if video.annotation is not None]
    given = [number for number in labelled if study.videos[number].split]
    if given and len(given) < len(labelled):
        missing = next(study.videos[number].video for number in labelled if number not in given)
        raise UserError(asked, f"{len(given)} of {len(labelled)} videos have a split; {missing} has none", _FILL_ALL)
    names = units_of([study.videos[number] for number in labelled])
    units = sorted(set(names))
    unit_of_row = [units.index(name) for name in names]
    shown_UC = np.zeros((len(units), len(study.classes)), np.int64)
    np.add.at(shown_UC, unit_of_row, counts.frames_VC[labelled])
    known = [c for c in range(len(study.classes)) if shown_UC[:, c].any()]
    if given:
        split_U = np.zeros(len(units), np.int64)
        split_U[unit_of_row] = [SPLITS.index(study.videos[number].split) for number in labelled]
        lacking = _first_lacking(split_U, shown_UC, known)
        if lacking is not None:
            split, c = lacking
            found = f"no animal of '{SPLITS[split]}' shows '{study.classes[c]}'; {_animals(units, shown_UC[:, c])} do"
            few = np.count_nonzero(shown_UC[:, c]) < len(SPLITS)
            do = _join(study, c) if few else "move an animal, or empty the column split to get a new one"
            raise UserError(asked, found, do)
        return SplitStudy(study, _warnings(study, labelled))
    _refuse_too_few(study, units, shown_UC, known, asked)
    group_of = {name: study.videos[number].group for name, number in zip(names, labelled, strict=True)}
    split_U = _best_split(units, shown_UC[:, known], [group_of[unit] for unit in units], seed, shares)
    lacking = _first_lacking(split_U, shown_UC, known)
    if lacking is not None:
        c = lacking[1]
        found = f"found no split with all classes in all of {', '.join(SPLITS)}: '{study.classes[c]}' is shown only by"
        raise UserError(asked, f"{found} {_animals(units, shown_UC[:, c])}", _join(study, c))
    row_split = dict(zip(labelled, split_U[unit_of_row].tolist(), strict=True))
    videos = tuple(
        replace(video, split=SPLITS[row_split[number]] if number in row_split else "")
        for number, video in enumerate(study.videos)
    )
    return SplitStudy(replace(study, videos=videos), _warnings(study, labelled))


_FILL_ALL = "fill in the column split in all rows, or in none"


def _join(study: Study, c: int) -> str:
    """What to do where a class cannot be in every split."""
    if study.classes[c] == study.background and not study.background_is_coded:
        return (
            "label all frames, give them to a behaviour (--background NAME), or leave frames without a code out "
            "(--unlabelled ignore)"
        )
    return f"label more animals, or join the class with another (--merge '{study.classes[c]}->NAME')"


def _warnings(study: Study, labelled: Sequence[int]) -> tuple[str, ...]:
    unknown = [study.videos[number].name for number in labelled if not study.videos[number].animal]
    if not unknown:
        return ()
    shown = ", ".join(unknown[:3]) + (", ..." if len(unknown) > 3 else "")
    return (
        f"warning: the animal of {len(unknown)} videos is not known ({shown}): each counts as an animal of its own. If "
        "two of them show one animal, it can be in train and in test, and the metrics are too good. Fill in the column "
        "animal of dataset.csv",
    )


def _refuse_too_few(study: Study, units: Sequence[str], shown_UC: Labels, known: Sequence[int], asked: str) -> None:
    """Raise UserError where there are fewer than three animals in all, or that show a class."""
    if len(units) < len(SPLITS):
        number = "1 animal" if len(units) == 1 else f"{len(units)} animals"
        found = f"{number} with labels: {', '.join(units)}; train, val and test need one each"
        raise UserError(asked, found, "label more animals; fill in the column animal where it is empty")
    for c in known:
        if np.count_nonzero(shown_UC[:, c]) < len(SPLITS):
            found = f"'{study.classes[c]}' is shown only by {_animals(units, shown_UC[:, c])}, and it is needed in "
            raise UserError(asked, f"{found}{', '.join(SPLITS)}", _join(study, c))


def _animals(units: Sequence[str], shown_U: Labels) -> str:
    names = [unit for unit, shown in zip(units, shown_U, strict=True) if shown]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "") or "no animal"


def _first_lacking(split_U: Labels, shown_UC: Labels, known: Sequence[int]) -> tuple[int, int] | None:
    """(split, class) of a class that a split lacks, the rarest class first; None where all have all."""
    for c in sorted(known, key=lambda c: int(np.count_nonzero(shown_UC[:, c]))):
        for split in range(len(SPLITS)):
            if not shown_UC[split_U == split, c].any():
                return split, c
    return None


def _best_split(
    units: Sequence[str], shown_UC: Labels, groups: Sequence[str], seed: int, shares: Sequence[float]
) -> Labels:
    """int64[U]: the split of each animal."""
    names = sorted(set(groups))
    group_UG = np.array([[group == name for name in names] for group in groups], np.float64)
    split_SU = _random_splits(units, seed, shares)
    missing_S, unlike_S = _quality(split_SU, shown_UC, group_UG)
    best_U = split_SU[np.lexsort((unlike_S, missing_S))[0]]
    for _ in range(SWAPS if missing_S.min() else 0):  # rare classes: exchange two animals while that helps
        first, second = np.triu_indices(len(units), 1)
        most = MAX_CELLS // len(units)
        differ = best_U[first] != best_U[second]
        first, second = first[differ][:most], second[differ][:most]
        swapped_SU = np.repeat(best_U[None], len(first) + 1, 0)
        at = np.arange(len(first))
        swapped_SU[at, first], swapped_SU[at, second] = best_U[second], best_U[first]
        missing_S, unlike_S = _quality(swapped_SU, shown_UC, group_UG)
        chosen = int(np.lexsort((unlike_S, missing_S))[0])
        if chosen == len(first) or missing_S[chosen] == missing_S[-1]:
            break
        best_U = swapped_SU[chosen]
    return best_U


def _random_splits(units: Sequence[str], seed: int, shares: Sequence[float]) -> Labels:
    """int64[S, U]: random orders of the animals, cut at the shares; each split has an animal at least."""
    count = len(units)
    sizes = [max(1, round(share * count)) for share in shares]
    sizes[0] = count - sizes[1] - sizes[2]
    by_rank = np.repeat(np.arange(len(SPLITS)), np.maximum(sizes, 0))
    digests = [blake2b(f"{seed}/split/{unit}".encode(), digest_size=8).digest() for unit in units]
    key_U = np.array([int.from_bytes(digest, "little") for digest in digests], np.uint64)
    key_SU = key_U[None] + np.arange(TRIES, dtype=np.uint64)[:, None] * GOLDEN_GAMMA_U64
    return by_rank[np.argsort(np.argsort(mix(key_SU), axis=1), axis=1)]


def _quality(split_SU: Labels, shown_UC: Labels, group_UG: Floats) -> tuple[npt.NDArray[np.int64], Floats]:
    """How many (class, split) lack animals, and how unlike the splits are: the sum of squared differences between the
    shares of classes and groups in a split and in the whole."""
    share_UC = shown_UC / np.maximum(shown_UC.sum(0), 1)
    missing_S = np.zeros(len(split_SU), np.int64)
    unlike_S = np.zeros(len(split_SU))
    for split in range(len(SPLITS)):
        member_SU = (split_SU == split).astype(np.float64)
        missing_S += ((member_SU @ (shown_UC > 0)) == 0).sum(1)
        size_S1 = member_SU.mean(1, keepdims=True)
        unlike_S += ((member_SU @ share_UC - size_S1) ** 2).mean(1)
        unlike_S += ((member_SU @ (group_UG / group_UG.sum(0)) - size_S1) ** 2).mean(1)
    return missing_S, unlike_S
