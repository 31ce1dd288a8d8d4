"""Self-play of mctx + pgx: `python mctx_selfplay.py --net tiny --games 64 --simulations 32 --cores 0,1`.

Gumbel MuZero's search as mctx provides it (16 moves considered) on pgx's chess, jitted, 32-bit floats, on the CPU;
games that end are replaced in the same step. What is learned from (planes, search policy, player, end) goes to host
memory after each ply. pgx's observation has 119 planes; the net takes the 19 that hold the position. The tree keeps
pgx's states without their observations, which is faster.
"""

from __future__ import annotations

import argparse
import os
from collections import deque

from nets import weights
from pace import Pace, keep_to, missing, versions

OPENING_PLIES, KEPT_PLIES = 8, 64


def play(asked: argparse.Namespace, pace: Pace) -> None:
    """All games at the same time, ply by ply, for ever."""
    import jax
    import jax.numpy as jnp
    import mctx
    import numpy as np
    import pgx
    from pgx.experimental import auto_reset

    env, num_games = pgx.make("chess"), asked.games
    arrays = weights(asked.net, 19)
    params = {
        "convs": [jnp.asarray(conv) for conv in arrays.convs],
        "policy": jnp.asarray(arrays.policy_PC.T),
        "value": jnp.asarray(arrays.value_F),
    }

    def planes(observation_BHWC):
        return jnp.concatenate([observation_BHWC[..., :12], observation_BHWC[..., -7:]], axis=-1)

    def conv(x, kernel):
        return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "OIHW", "NHWC"))

    def net(params, x):
        first, *rest = params["convs"]
        x = jax.nn.relu(conv(x, first))
        if arrays.residual:
            for one, two in zip(rest[::2], rest[1::2], strict=True):
                x = jax.nn.relu(x + conv(jax.nn.relu(conv(x, one)), two))
        else:
            for kernel in rest:
                x = jax.nn.relu(conv(x, kernel))
        # pgx numbers its squares by columns, from the bottom
        logits = jnp.flip(x @ params["policy"], 1).swapaxes(1, 2).reshape(num_games, -1)
        return logits, jnp.tanh(x.reshape(num_games, -1) @ params["value"])

    def kept(state):
        return state.replace(observation=jnp.zeros((num_games, 0)))

    def step(params, key, action_B, state):
        del key
        mover_B = state.current_player
        state = jax.vmap(env.step)(state, action_B)
        logits, value_B = net(params, planes(state.observation))
        masked = jnp.where(state.legal_action_mask, logits, jnp.finfo(jnp.float32).min)
        output = mctx.RecurrentFnOutput(
            reward=state.rewards[jnp.arange(num_games), mover_B],
            discount=jnp.where(state.terminated, 0.0, -1.0),
            prior_logits=masked,
            value=jnp.where(state.terminated, 0.0, value_B),
        )
        return output, kept(state)

    @jax.jit
    def ply(params, key, state):
        search_key, reset_key = jax.random.split(key)
        logits, value_B = net(params, planes(state.observation))
        root = mctx.RootFnOutput(prior_logits=logits, value=value_B, embedding=kept(state))
        found = mctx.gumbel_muzero_policy(
            params, search_key, root, step, asked.simulations, ~state.legal_action_mask, max_num_considered_actions=16
        )
        following = jax.vmap(auto_reset(env.step, env.init))(
            state, found.action, jax.random.split(reset_key, num_games)
        )
        learned = planes(state.observation), found.action_weights, state.current_player
        return following, (*learned, following.terminated | following.truncated)

    @jax.jit
    def opened(key):
        def random_ply(_, carry):
            key, state = carry
            key, draw = jax.random.split(key)
            action_B = jax.random.categorical(draw, jnp.where(state.legal_action_mask, 0.0, -jnp.inf))
            return key, jax.vmap(env.step)(state, action_B)

        state = jax.vmap(env.init)(jax.random.split(key, num_games))
        return jax.lax.fori_loop(0, OPENING_PLIES, random_ply, (key, state))[1]

    key, state = jax.random.key(2), opened(jax.random.key(1))
    records: deque = deque(maxlen=KEPT_PLIES)
    number = 0
    while True:
        state, learned = ply(params, jax.random.fold_in(key, number), state)
        records.append([np.asarray(array) for array in learned])
        number += 1
        if number == 1:
            pace.ready(version=versions("mctx", "pgx", "jax"), games=num_games)
        else:
            done = num_games * asked.simulations
            pace.add(plies=num_games, simulations=done, evaluations=done + num_games, games=int(records[-1][3].sum()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", required=True)
    parser.add_argument("--games", type=int, default=64)
    parser.add_argument("--simulations", type=int, default=32)
    parser.add_argument("--cores", default="0,1")
    asked = parser.parse_args()
    keep_to(asked.cores)
    os.environ["JAX_PLATFORMS"] = "cpu"
    try:
        play(asked, Pace())
    except ImportError as error:
        missing(error)


if __name__ == "__main__":
    main()
