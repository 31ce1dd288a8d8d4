"""The chess core: rules, notation, players, matches and UCI."""

from __future__ import annotations

COMMANDS: dict[str, str] = {
    "perft": "ranks.chess.commands.perft:perft",
    "bench": "ranks.chess.commands.bench:bench",
    "match": "ranks.chess.commands.match:match",
    "ladder": "ranks.chess.commands.ladder:ladder",
    "uci": "ranks.chess.commands.uci:uci",
    "play": "ranks.chess.commands.play:play",
}
