"""Every parser of what users and other programs write, with valid examples and the errors that it declares."""

from __future__ import annotations

from tests.fuzz import chess_parsers, command_parsers, video_parsers, workload_parsers
from tests.fuzz.registry import PARSERS, Parser

__all__ = ["PARSERS", "Parser", "chess_parsers", "command_parsers", "video_parsers", "workload_parsers"]
