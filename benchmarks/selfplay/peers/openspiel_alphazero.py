"""OpenSpiel's AlphaZero (JAX, nnx): one actor on one core, as `alpha_zero.actor` runs it.

    python openspiel_alphazero.py --net tiny --simulations 32 --cores 0

`alpha_zero._play_game`, `MCTSBot` and `AlphaZeroEvaluator` (its cache is on) are OpenSpiel's own; the net is an nnx
module with the layers of nets.py behind `model_nnx.Model`. Each game's states go into OpenSpiel's replay buffer, as its
learner puts them there. `--jit`: the forward pass is compiled, which OpenSpiel does not do; our change, in its favour.
OpenSpiel's chess has 20 planes (ours 19) and 4,674 moves (ours 4,672).
"""

from __future__ import annotations

import argparse
import os
from typing import Any

from nets import weights
from pace import Pace, keep_to, missing, versions

PLANES, MOVES, BUFFER = 20, 4674, 1024


def make_model(net: str, jit: bool) -> Any:
    """OpenSpiel's `Model` around a net of the comparison."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax
    from flax import nnx
    from open_spiel.python.algorithms.alpha_zero import model_nnx

    if net == "constant":

        class Constant:
            """Equal priors for all legal moves, value 0, without jax."""

            def inference(self, observation: Any, legals_mask: Any) -> tuple[Any, Any]:
                mask = np.asarray(legals_mask, np.float32)
                return 0.0, mask / mask.sum()

        return Constant()
    arrays = weights(net, PLANES)

    class Net(nnx.Module):
        def __init__(self) -> None:
            convs = []
            for kernel in arrays.convs:
                out_features, in_features = kernel.shape[:2]
                conv = nnx.Conv(in_features, out_features, (3, 3), use_bias=False, rngs=nnx.Rngs(0))
                conv.kernel.value = jnp.asarray(kernel.transpose(2, 3, 1, 0))
                convs.append(conv)
            self.convs = nnx.List(convs)
            self.policy = nnx.Param(jnp.asarray(arrays.policy_PC.T))
            self.value = nnx.Param(jnp.asarray(arrays.value_F))

        def __call__(self, observation: jax.Array) -> tuple[jax.Array, jax.Array]:
            x = observation.reshape(PLANES, 8, 8).transpose(1, 2, 0)
            first, *rest = self.convs
            x = nnx.relu(first(x))
            if arrays.residual:
                for one, two in zip(rest[::2], rest[1::2], strict=True):
                    x = nnx.relu(x + two(nnx.relu(one(x))))
            else:
                for conv in rest:
                    x = nnx.relu(conv(x))
            logits = jnp.pad((x @ self.policy.value).reshape(-1), (0, MOVES - 4672))
            return logits, jnp.tanh(x.reshape(-1) @ self.value.value)

    state = model_nnx.Model._create_train_state(Net(), optax.adam(1e-3))
    if not jit:
        return model_nnx.Model(state, None, lambda *_: None)

    class Compiled(model_nnx.Model):
        """The same forward pass, compiled once."""

        def inference(self, observation: Any, legals_mask: Any) -> tuple[Any, Any]:
            value, policy = self.forward(self._state.params, observation.astype(np.float32), legals_mask.astype(bool))
            return np.asarray(value), np.asarray(policy)

        @staticmethod
        @jax.jit
        def forward(params: Any, observation: jax.Array, mask: jax.Array) -> tuple[jax.Array, jax.Array]:
            logits, value = nnx.merge(state.graphdef, params, state.batch_stats)(observation)
            return value, nnx.softmax(jnp.where(mask, logits, jnp.finfo(jnp.float32).min))

    return Compiled(state, None, lambda *_: None)


def play(asked: argparse.Namespace, pace: Pace) -> None:
    """Games one after the other, for ever."""
    import jax.numpy as jnp
    import pyspiel
    from open_spiel.python.algorithms.alpha_zero import alpha_zero, evaluator, replay_buffer, utils

    game = pyspiel.load_game("chess")
    assert (game.observation_tensor_shape()[0], game.num_distinct_actions()) == (PLANES, MOVES)
    az_evaluator = evaluator.AlphaZeroEvaluator(game, make_model(asked.net, asked.jit))
    config = argparse.Namespace(
        policy_epsilon=0.25, policy_alpha=0.3, uct_c=1.25, max_simulations=asked.simulations, verbose=False
    )
    searched = 0

    class Bot:
        """OpenSpiel's bot; a ply is counted when its search is done."""

        def __init__(self) -> None:
            self.bot = alpha_zero._init_bot(config, game, az_evaluator, False)

        def mcts_search(self, state: Any) -> Any:
            nonlocal searched
            before = az_evaluator.cache_info().misses
            root = self.bot.mcts_search(state)
            searched += 1
            if searched == 3:  # all is compiled
                pace.ready(version=versions("open-spiel", "jax", "flax"), jit=asked.jit)
            elif searched > 3:
                misses = az_evaluator.cache_info().misses - before
                pace.add(plies=1, simulations=asked.simulations, evaluations=misses)
            return root

    class Logger:
        def print(self, *_: Any) -> None: ...

        opt_print = print

    bots = (Bot(), Bot())
    window = replay_buffer.Buffer(BUFFER)
    number = 0
    while True:
        number += 1
        trajectory = alpha_zero._play_game(Logger(), number, game, bots, 1.0, 30)
        for state in trajectory.states:
            window.append(
                utils.TrainInput(
                    observation=jnp.asarray(state.observation, dtype=jnp.float32),
                    legals_mask=jnp.asarray(state.legals_mask, dtype=jnp.bool),
                    policy=jnp.asarray(state.policy, dtype=jnp.float32),
                    value=jnp.asarray(trajectory.returns[0], dtype=jnp.float32),
                )
            )
        pace.count(games=1, game_plies=len(trajectory.states))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--net", required=True)
    parser.add_argument("--simulations", type=int, default=32)
    parser.add_argument("--jit", action="store_true")
    parser.add_argument("--cores", default="0")
    asked = parser.parse_args()
    keep_to(asked.cores)
    os.environ["JAX_PLATFORMS"] = "cpu"
    try:
        play(asked, Pace())
    except ImportError as error:
        missing(error)


if __name__ == "__main__":
    main()
