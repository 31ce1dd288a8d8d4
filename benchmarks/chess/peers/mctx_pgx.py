"""Simulations of mctx + pgx with the tiny net.

    python mctx_pgx.py --games 64 --simulations 32 --cores 0,1

Gumbel MuZero's search as mctx provides it (16 moves considered), on pgx's chess, jitted, 32-bit
floats, on the CPU. pgx's observation has 119 planes; the net takes the 19 that hold the position
(12 pieces, side, plies, castling, 50 moves). The tree keeps pgx's states (30 KB each) without their
observations, which is faster than keeping them.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from tiny_net import OPENING_PLIES, weights
from worker import Prepared, keep_to, serve, version

# B games, H rows, W columns, C planes or channels, F features, A moves


def prepare(num_games: int, simulations: int) -> Prepared:
    """One search for each of `num_games` games, after a few random plies."""
    import jax
    import jax.numpy as jnp
    import mctx
    import pgx

    env = pgx.make("chess")
    params = {name: jnp.asarray(value) for name, value in weights().items()}

    def planes(observation_BHWC: jax.Array) -> jax.Array:
        return jnp.concatenate([observation_BHWC[..., :12], observation_BHWC[..., -7:]], axis=-1)

    def net(params: dict[str, jax.Array], x_BHWC: jax.Array) -> tuple[jax.Array, jax.Array]:
        for name in ("conv1", "conv2"):
            layout = ("NHWC", "OIHW", "NHWC")
            x_BHWC = jax.lax.conv_general_dilated(x_BHWC, params[name], (1, 1), "SAME", dimension_numbers=layout)
            x_BHWC = jax.nn.relu(x_BHWC)
        # pgx numbers its squares by columns, from the bottom
        logits_BA = jnp.flip(x_BHWC @ params["policy"].T, 1).swapaxes(1, 2).reshape(len(x_BHWC), -1)
        return logits_BA, jnp.tanh(x_BHWC.reshape(len(x_BHWC), -1) @ params["value"])

    def kept(state: pgx.State) -> pgx.State:
        return state.replace(observation=jnp.zeros((num_games, 0)))

    def step(params, key, action_B, state):
        del key
        mover_B = state.current_player
        state = jax.vmap(env.step)(state, action_B)
        logits_BA, value_B = net(params, planes(state.observation))
        masked_BA = jnp.where(state.legal_action_mask, logits_BA, jnp.finfo(jnp.float32).min)
        output = mctx.RecurrentFnOutput(
            reward=state.rewards[jnp.arange(num_games), mover_B],
            discount=jnp.where(state.terminated, 0.0, -1.0),
            prior_logits=masked_BA,
            value=jnp.where(state.terminated, 0.0, value_B),
        )
        return output, kept(state)

    @jax.jit
    def search(params, key, state):
        logits_BA, value_B = net(params, planes(state.observation))
        root = mctx.RootFnOutput(prior_logits=logits_BA, value=value_B, embedding=kept(state))
        output = mctx.gumbel_muzero_policy(
            params, key, root, step, simulations, ~state.legal_action_mask, max_num_considered_actions=16
        )
        return output.action

    @jax.jit
    def opened(key):
        def ply(_, carry):
            key, state = carry
            key, draw = jax.random.split(key)
            action_B = jax.random.categorical(draw, jnp.where(state.legal_action_mask, 0.0, -jnp.inf))
            return key, jax.vmap(env.step)(state, action_B)

        state = jax.vmap(env.init)(jax.random.split(key, num_games))
        return jax.lax.fori_loop(0, OPENING_PLIES, ply, (key, state))[1]

    state = opened(jax.random.key(1))
    keys = iter(jax.random.split(jax.random.key(2), 10_000))

    def work() -> Mapping[str, float]:
        search(params, next(keys), state).block_until_ready()
        return {"done": num_games * simulations}

    versions = ", ".join(version(name) for name in ("mctx", "pgx", "jax"))
    return work, {"version": versions, "games": num_games, "simulations": simulations}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", type=int, default=64)
    parser.add_argument("--simulations", type=int, default=32)
    parser.add_argument("--cores", default="0,1")
    asked = parser.parse_args()
    keep_to(asked.cores)
    serve(lambda: prepare(asked.games, asked.simulations))


if __name__ == "__main__":
    main()
