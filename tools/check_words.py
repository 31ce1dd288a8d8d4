"""Count names and words that a newcomer would not search for: `python tools/check_words.py`.

`NAMES` holds retired identifiers, each with the rooms in which it is retired. `PROSE` holds words that comments,
docstrings and pages do not use. The script prints each use with file and line, then the count of each word, and exits
with 1 when it finds one. It also finds class names that two modules of the package share.

A name counts when it is an identifier, a part of one (`num_deals`), or a part of a file name. `ALLOWED` lists the
uses that have their ordinary meaning.
"""

from __future__ import annotations

import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "src/ranks/"
CODE = (PACKAGE, "tests/", "benchmarks/", "examples/", "tools/", "docs/")
ENGINE = (PACKAGE + "engine/",)
RL = (PACKAGE + "rl/", PACKAGE + "cli/templates/on_policy.py")
PPO = (PACKAGE + "rl/config.py", PACKAGE + "rl/ppo.py")
SEARCH = (PACKAGE + "search/", PACKAGE + "jit.py")
CHESS = (PACKAGE + "chess/",)
COLORING = (PACKAGE + "workloads/graph_coloring/",)
TRADING = (PACKAGE + "workloads/stock_trading/",)


@dataclass(frozen=True)
class Retired:
    """Words that a room no longer uses. `whole`: only as a whole identifier, in this spelling."""

    rooms: tuple[str, ...]
    words: str
    whole: bool = False


NAMES = (
    Retired(CODE, "experience deal deals dealt luck ballot rehearse"),
    Retired(CODE, "draws"),
    Retired(ENGINE, "alone pace opening journal exported guard fault faults settle settled doomed sweep set_aside"),
    Retired(ENGINE, "Found Job facts", whole=True),
    Retired((PACKAGE + "launch/",), "sweep sweeper"),
    Retired(RL, "draft moved unfit refuse_unfit trees play_episodes weighed"),
    Retired(RL, "Group Taken RAW seen freeze fresh", whole=True),
    Retired(PPO, "clip value_weight entropy_weight discount policy_gain clipped", whole=True),
    Retired((*ENGINE, *RL), "acting", whole=True),
    Retired(SEARCH, "grow plant lose_virtually next_leaf"),
    Retired(SEARCH, "advance made wide look full", whole=True),
    Retired(CHESS, "seat seats entrant entrants playerword men"),
    Retired(COLORING, "surprise forgiven lead_in heard descend told"),
    Retired(COLORING, "reader cell near Way", whole=True),
    Retired(TRADING, "carried on_market one_account trainings days_in_words"),
    Retired((PACKAGE + "watch/",), "Board View", whole=True),
    Retired((PACKAGE + "prove/",), "Straight Place", whole=True),
    Retired((PACKAGE + "prove/",), "broke_off"),
    Retired(("tests/",), "twin twins"),
    Retired(("tests/",), "known", whole=True),
)
ALLOWED = {
    "draws": (
        *CHESS,
        PACKAGE + "rating/",
        PACKAGE + "search/games/",
        PACKAGE + "workloads/chess_value/strength_table.py",
        "tests/chess/",
        "tests/rating/",
        "benchmarks/",
    ),
    "opening": CHESS,
    "full": (PACKAGE + "search/arguments.py",),  # numpy.full
}
PROSE = re.compile(
    r"\b(told|stands|beside|luck|anew|dealt|ballot|dearest|mend|mended|mends|heed|thereof|nobody's"
    r"|as far as it goes|its own business|what was none)\b",
    re.IGNORECASE,
)
CLASS = re.compile(r" *class (\w+)[:(\[]")
SHARED_CLASSES = {"Config", "DataConfig", "ModelConfig"}
"""Class names that more than one module has by design: the settings of each workload."""
SELF = "tools/check_words.py"


@dataclass(frozen=True)
class Use:
    path: str
    line: int
    word: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word}"


@cache
def parts_of(identifier: str) -> str:
    """'EnvGroup_of' -> '_env_group_of_': the identifier in lower case with its parts between underscores."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", identifier)
    return f"_{snake.lower().strip('_')}_"


@lru_cache(maxsize=1)
def tokens_of(path: Path) -> list[tokenize.TokenInfo]:
    """The tokens of the Python file that is read now: its names and its prose are looked at one after the other."""
    with tokenize.open(path) as file:
        return list(tokenize.generate_tokens(file.readline))


def identifiers(path: Path) -> Iterator[tuple[int, str]]:
    """(line, identifier) of a Python file, the parts of its name first."""
    yield 0, path.stem
    for token in tokens_of(path):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string


def retired_names(path: str) -> Iterator[Use]:
    """The uses of retired names in one Python file."""
    rules = [rule for rule in NAMES if path.startswith(rule.rooms)]
    words = [(word, rule.whole) for rule in rules for word in rule.words.split()]
    words = [(word, whole) for word, whole in words if not path.startswith(ALLOWED.get(word, "-"))]
    letters = (path + (ROOT / path).read_text(encoding="utf-8")).lower().replace("_", "")
    words = [(word, whole) for word, whole in words if word.lower().replace("_", "") in letters]
    if not words:
        return  # most files: reading their tokens takes most of the time
    names = list(identifiers(ROOT / path))
    retired = {
        name: [word for word, whole in words if (name == word if whole else f"_{word}_" in parts_of(name))]
        for name in {name for _, name in names}
    }
    for line, name in names:
        yield from (Use(path, line, word) for word in retired[name])


def retired_prose(path: str) -> Iterator[Use]:
    """The uses of retired words in a page, or in the comments and strings of a Python file."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if not PROSE.search(text):
        return
    if not path.endswith(".py"):
        lines = list(enumerate(text.splitlines(), 1))
    else:
        kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
        lines = [
            (token.start[0] + i, line)
            for token in tokens_of(ROOT / path)
            if token.type in kinds
            for i, line in enumerate(token.string.splitlines())
        ]
    for number, line in lines:
        for match in PROSE.finditer(line):
            yield Use(path, number, match[0].lower())


def shared_classes(paths: list[str]) -> Iterator[Use]:
    """Class names of the package that two modules define."""
    homes: defaultdict[str, list[Use]] = defaultdict(list)
    for path in paths:
        for number, line in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), 1):
            if (found := CLASS.match(line)) and found[1] not in SHARED_CLASSES:
                homes[found[1]].append(Use(path, number, f"class {found[1]}"))
    for uses in homes.values():
        if len(uses) > 1:
            yield from uses


def find_all() -> list[Use]:
    """Every use that the rules above forbid."""
    code = sorted(str(p.relative_to(ROOT)) for place in CODE for p in (ROOT / place).rglob("*.py"))
    pages = sorted(str(p.relative_to(ROOT)) for place in (".", "docs", "tests") for p in (ROOT / place).glob("*.md"))
    code = [path for path in code if path != SELF]
    found = [use for path in code for use in (*retired_names(path), *retired_prose(path))]
    found += [use for path in pages for use in retired_prose(path)]
    return [
        *found,
        *shared_classes([path for path in code if path.startswith(PACKAGE) and "cli/templates/" not in path]),
    ]


def main() -> int:
    uses = find_all()
    for use in uses:
        print(use)
    for word, count in Counter(use.word for use in uses).most_common():
        print(f"{count:5} {word}")
    print(f"{len(uses)} uses of retired names and words")
    return 1 if uses else 0


if __name__ == "__main__":
    sys.exit(main())
