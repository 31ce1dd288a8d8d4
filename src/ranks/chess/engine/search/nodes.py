"""The first visit of a node: draws, the transposition table, the static evaluation and what it allows to leave out."""

from __future__ import annotations

import numpy as np

from ranks.chess.core.alphabeta_state import (
    EXACT,
    HISTORY,
    LEVELS,
    LOWER_BOUND,
    MATE,
    MATE_FLOOR,
    UNKNOWN,
    UPPER_BOUND,
    Number,
)
from ranks.chess.core.attacks import bishop_attacks, rook_attacks
from ranks.chess.core.bits import ONE, ZERO, Word, clear_lsb, lsb
from ranks.chess.core.moves import MAX_MOVES, PROMOTION, generate, list_moves
from ranks.chess.core.position import HALF_MOVES, Position, attackers, insufficient_material, load
from ranks.chess.core.rules import FIFTY_MOVES
from ranks.chess.core.tables import KNIGHT, PAWN, Words
from ranks.chess.engine.evaluation import evaluate_level, prepare_root
from ranks.chess.engine.search.ordering import order_moves
from ranks.chess.engine.search.pruning import (
    FUTILE_NODE_CP,
    FUTILE_NODE_DEPTH,
    NO_HASH_MOVE_DEPTH,
    NULL_DEPTH,
)
from ranks.chess.engine.search.state import EXPAND, MOVES, NULL_MOVE, PIECE_SQUARES, EngineState
from ranks.chess.engine.search.transpositions import (
    NO_EVAL,
    bound_of,
    depth_of,
    eval_of,
    move_of,
    probe,
    score_of,
    store_result,
)
from ranks.jit import helper, inlined

QUEEN_PROMOTION = np.uint64(4 << 12)
TABLE_CLOCK = 90
"""From this halfmove clock on, no cutoff by the table: its scores know nothing of the fifty-move rule."""
CLOCK_KEYS_FROM, CLOCK_KEY = np.uint64(64), np.uint64(0x9E3779B97F4A7C15)
"""From this halfmove clock on, positions with clocks far apart have other keys in the table: near the end of the fifty
moves a score is not that of the same position with a low clock."""


@helper
def in_check(p: Position) -> bool:
    """Whether the side to move is in check."""
    own, others = (p.white, p.black) if p.side == ZERO else (p.black, p.white)
    return attackers(p, lsb(p.kings & own), p.white | p.black, p.side) & others != ZERO


@helper
def has_moves(p: Position, sets: Words) -> bool:
    """Whether the side to move has a legal move. `sets`: room for the move generator."""
    stop, _ = generate(p, sets)
    return stop > 0


@inlined
def is_drawn(s: EngineState, p: Position, level: int) -> bool:
    """Whether a node is a draw by the rules, or repeats a position of the search (then it could be repeated again)."""
    clock = np.int64(p.clocks & HALF_MOVES)
    end = HISTORY + level
    reach = min(clock + 1, end - s.control[0].begin)
    seen_before_root = 0
    for back in range(3, reach + 1):  # keys hold the side; a singular search has a level of its own for a position
        if s.keys[end - back] == p.key:
            if back < level:
                return True
            seen_before_root += 1
            if seen_before_root == 2:
                return True
    if clock >= np.int64(FIFTY_MOVES) and (s.frames[level].in_check == 0 or has_moves(p, s.move_sets)):
        return True
    return insufficient_material(p)


@inlined
def table_key(key: Word, clocks: Word) -> Word:
    """The key of a position in the transposition table."""
    clock = clocks & HALF_MOVES
    return key if clock < CLOCK_KEYS_FROM else key ^ (clock >> np.uint64(3)) * CLOCK_KEY


@inlined
def enter_root(s: EngineState) -> None:
    """Evaluate the root, whose moves are set."""
    f = s.frames[0]
    prepare_root(s)
    s.keys[HISTORY] = s.rows[0, 12]
    f.static_eval, f.stage = NO_EVAL, MOVES


@inlined
def enter(s: EngineState, level: int) -> Number:
    """Visit a node for the first time.

    Returns its score, or UNKNOWN if its moves must be searched; then `stage` says how to go on."""
    f, control = s.frames[level], s.control[0]
    p = load(s.rows, level)
    s.keys[HISTORY + level] = p.key
    f.best, f.best_move, f.pv_length, f.stage = -UNKNOWN, 0, 0, EXPAND
    f.num_moves = f.num_tried = f.num_searched = f.num_quiets = 0
    f.hash_move = f.extension = f.singular_tested = 0
    f.hash_depth = -1
    is_sound, is_pv = control.sound != 0, f.beta - f.alpha > 1
    if f.excluded == 0 and is_drawn(s, p, level):
        return 0
    if level == LEVELS - 1 and f.in_check:
        return 0
    # no score can be better than a mate by the next move, or worse than being mated now
    f.alpha, f.beta = max(f.alpha, level - MATE), min(f.beta, MATE - level - 1)
    f.first_alpha = f.alpha
    if f.alpha >= f.beta:
        return f.alpha
    if f.in_check and f.depth >= 0 and level < 2 * control.root_depth:
        f.depth += 1

    # the transposition table: a score that settles the node, or a first move
    entry = probe(s.table, table_key(p.key, p.clocks)) if f.excluded == 0 else 0
    hash_eval = NO_EVAL
    if entry != 0:
        f.hash_move, f.hash_depth, f.hash_bound = move_of(entry), depth_of(entry), bound_of(entry)
        f.hash_score, hash_eval = score_of(entry, level), eval_of(entry)
        in_time = np.int64(p.clocks & HALF_MOVES) < TABLE_CLOCK
        if (
            not is_sound
            and not is_pv
            and f.hash_depth >= f.depth
            and in_time
            and settles(f.hash_bound, f.hash_score, f.beta)
        ):
            return f.hash_score

    # the static evaluation; a score of the table is a better estimate where its bound allows
    f.static_eval = NO_EVAL
    if f.in_check:
        return UNKNOWN
    f.static_eval = hash_eval if hash_eval != NO_EVAL else evaluate_level(s, p, level)
    if level == LEVELS - 1:
        return f.static_eval
    estimate = f.static_eval
    if not is_sound and entry != 0 and settles(f.hash_bound, f.hash_score, estimate):
        estimate = f.hash_score
    may_prune = not is_sound and not is_pv and f.excluded == 0 and abs(f.beta) < MATE_FLOOR
    if f.depth <= 0:  # quiescence: the side to move need not capture
        f.best = estimate
        if estimate >= f.beta:
            return estimate
        f.alpha = max(f.alpha, estimate)
        return UNKNOWN
    if may_prune:
        margin_cp = FUTILE_NODE_CP * (f.depth - is_improving(s, level))
        if f.depth <= FUTILE_NODE_DEPTH and estimate - margin_cp >= f.beta and estimate < MATE_FLOOR:
            return estimate
        own = p.white if p.side == ZERO else p.black
        minors = (p.knights | p.bishops) & own
        has_pieces = (p.rooks | p.queens) & own != ZERO or clear_lsb(minors) != ZERO  # else zugzwang is likely
        passed = s.frames[level - 1].moved == PIECE_SQUARES
        if f.depth >= NULL_DEPTH and estimate >= f.beta and f.static_eval >= f.beta - 60 and has_pieces and not passed:
            f.stage = NULL_MOVE
    if not is_sound and f.depth >= NO_HASH_MOVE_DEPTH and f.hash_move == 0 and f.excluded == 0:
        f.depth -= 1
    return UNKNOWN


@inlined
def settles(bound: Number, score: Number, threshold: Number) -> bool:
    """Whether a bounded score says on which side of a threshold the true score is (at or above, or below)."""
    return (
        bound == EXACT or (bound == LOWER_BOUND and score >= threshold) or (bound == UPPER_BOUND and score < threshold)
    )


@inlined
def is_improving(s: EngineState, level: int) -> Number:
    """1 if the static evaluation has risen since the last move of the same side, or none is known, else 0."""
    f = s.frames[level]
    if f.in_check:
        return 0
    back = 3 if level > 0 and (f.excluded != 0 or s.frames[level - 1].excluded != 0) else 2  # a singular search
    return 1 if level < back or f.static_eval > s.frames[level - back].static_eval else 0


@inlined
def expand(s: EngineState, level: int) -> Number:
    """List and order the moves of a node: all, or in the quiescence search captures and promotions to a queen.

    Returns UNKNOWN, or the score if there is no move."""
    f = s.frames[level]
    p = load(s.rows, level)
    sets = s.move_sets
    stop, _ = generate(p, sets)
    quiesces = f.depth <= 0 and f.in_check == 0
    if stop == 0:
        if quiesces:
            return f.best
        return level - MATE if f.in_check else 0
    if quiesces:
        captures = (p.black if p.side == ZERO else p.white) | p.en_passant
        for at in range(0, stop, 2):
            if sets[at] & PROMOTION == ZERO:
                sets[at + 1] &= captures
            elif sets[at] & PROMOTION != QUEEN_PROMOTION:
                sets[at + 1] = ZERO
    f.num_moves = list_moves(sets, stop, s.moves, level * MAX_MOVES)
    order_moves(s, p, level, quiesces)
    f.stage = MOVES
    if f.depth > 0:
        write_checks(s, p, level)
    return UNKNOWN


@inlined
def write_checks(s: EngineState, p: Position, level: int) -> None:
    """Write the squares from which each kind of piece would give check, and the pieces whose moves discover one."""
    f = s.frames[level]
    king = lsb(p.kings & (p.black if p.side == ZERO else p.white))
    occupied = p.white | p.black
    f.knight_checks = KNIGHT[king]
    f.bishop_checks, f.rook_checks = bishop_attacks(king, occupied), rook_attacks(king, occupied)
    f.pawn_checks = PAWN[(p.side ^ ONE) * np.uint64(64) + king]
    own = p.white if p.side == ZERO else p.black
    near_diagonal, near_straight = f.bishop_checks & own, f.rook_checks & own
    f.discoverers = ZERO
    behind = bishop_attacks(king, occupied ^ near_diagonal) & ~f.bishop_checks & own & (p.bishops | p.queens)
    while behind != ZERO:
        f.discoverers |= near_diagonal & bishop_attacks(lsb(behind), occupied)
        behind = clear_lsb(behind)
    behind = rook_attacks(king, occupied ^ near_straight) & ~f.rook_checks & own & (p.rooks | p.queens)
    while behind != ZERO:
        f.discoverers |= near_straight & rook_attacks(lsb(behind), occupied)
        behind = clear_lsb(behind)


@inlined
def checks_of(s: EngineState, level: int, kind: Number) -> Word:
    """The squares from which a piece of a kind (1 pawn to 6 king) gives check."""
    f = s.frames[level]
    if kind == 1:
        return f.pawn_checks
    if kind == 2:
        return f.knight_checks
    if kind == 3:
        return f.bishop_checks
    if kind == 4:
        return f.rook_checks
    return f.bishop_checks | f.rook_checks if kind == 5 else ZERO


@inlined
def finish(s: EngineState, level: int) -> Number:
    """All moves that count have been searched, or one caused a cutoff: store the result and return the score."""
    f = s.frames[level]
    if f.best == -UNKNOWN:  # every move was left out
        return f.alpha
    if f.excluded == 0 and (f.num_searched > 0 or f.depth <= 0):  # not what a null move or other moves have shown
        bound = LOWER_BOUND if f.best >= f.beta else EXACT if f.best > f.first_alpha else UPPER_BOUND
        key, generation = table_key(s.rows[level, 12], s.rows[level, 11]), s.control[0].generation
        store_result(s.table, key, level, f.best, f.best_move, f.static_eval, f.depth, bound, generation)
    return f.best
