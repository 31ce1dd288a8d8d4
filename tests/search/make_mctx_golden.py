"""Write golden_mctx.json: mctx's Gumbel search of Connect Four openings, evaluated by reference.hash_evaluator.

    python -m tests.search.make_mctx_golden        in an environment with mctx and jax, which this project does not need

A move that ends the game has its outcome as reward and discount 0. Every other move has reward 0 and discount -1.
"""

from __future__ import annotations

import json
from pathlib import Path

import jax  # pyright: ignore[reportMissingImports]
import jax.numpy as jnp  # pyright: ignore[reportMissingImports]
import mctx  # pyright: ignore[reportMissingImports]
import numpy as np

from ranks.search.evaluation import Leaves
from ranks.search.game import outcome_of
from ranks.search.games.connect_four import CONNECT_FOUR
from tests.search import reference

OPENINGS = [[], [3], [0, 6], [2, 4, 3], [3, 3, 2]]
KEYS, MOVES = np.zeros(1, np.uint64), np.zeros(7, np.uint16)
SIMULATIONS = [4, 16, 50]


def evaluate(states_BW: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows = len(states_BW)
    leaves = Leaves(
        np.asarray(states_BW, np.uint64), np.tile(np.arange(7, dtype=np.uint16), (rows, 1)), np.full(rows, 7)
    )
    priors_BM, value_B = reference.hash_evaluator(leaves)
    return np.log(priors_BM), value_B


def step(states_BW: np.ndarray, moves_B: np.ndarray) -> tuple[np.ndarray, ...]:
    after_BW = np.zeros_like(states_BW, np.uint64)
    for row, move in enumerate(moves_B):
        CONNECT_FOUR.play(np.array(states_BW, np.uint64), row, after_BW, row, np.uint16(move))
    num_moves_B = [CONNECT_FOUR.legal_moves(after_BW, row, KEYS, 0, 0, MOVES, 0) for row in range(len(after_BW))]
    reward_B = np.array([-outcome_of(n) if n < 0 else 0.0 for n in num_moves_B], np.float32)
    discount_B = np.array([0.0 if n < 0 else -1.0 for n in num_moves_B], np.float32)
    return after_BW, *evaluate(after_BW), reward_B, discount_B


def recurrent(params: None, key: jax.Array, move_B: jax.Array, states_BW: jax.Array) -> tuple[object, jax.Array]:
    rows = move_B.shape[0]
    shapes = (
        jax.ShapeDtypeStruct((rows, 2), jnp.uint64),
        jax.ShapeDtypeStruct((rows, 7), jnp.float32),
        *(jax.ShapeDtypeStruct((rows,), jnp.float32),) * 3,
    )
    after_BW, logits_BM, value_B, reward_B, discount_B = jax.pure_callback(step, shapes, states_BW, move_B)
    return mctx.RecurrentFnOutput(reward=reward_B, discount=discount_B, prior_logits=logits_BM, value=value_B), after_BW


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    states: list[np.ndarray] = []
    for moves in OPENINGS:
        node = reference.new_node(CONNECT_FOUR, CONNECT_FOUR.initial[None].copy(), [])
        for move in moves:
            node = reference.after(CONNECT_FOUR, node, move)
        states.append(node.state[0])
    logits_BM, value_B = evaluate(np.array(states))
    root = mctx.RootFnOutput(prior_logits=jnp.array(logits_BM), value=jnp.array(value_B), embedding=jnp.array(states))
    rows = []
    for simulations in SIMULATIONS:
        out = mctx.gumbel_muzero_policy(
            None, jax.random.PRNGKey(0), root, recurrent, simulations, max_num_considered_actions=4, gumbel_scale=0.0
        )
        visits_BM = np.asarray(out.search_tree.summary().visit_counts)
        for row, moves in enumerate(OPENINGS):
            rows.append(
                {
                    "moves": moves,
                    "simulations": simulations,
                    "action": int(out.action[row]),
                    "visits": visits_BM[row].astype(int).tolist(),
                    "policy": np.asarray(out.action_weights[row], np.float64).round(6).tolist(),
                }
            )
    Path(__file__).with_name("golden_mctx.json").write_text(
        json.dumps({"mctx": mctx.__version__, "jax": jax.__version__, "rows": rows}) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
