"""`ActorCritic`: an MLP, CNN or LSTM policy for any supported observation and action space.

Initialised as in Huang et al. 2022, "The 37 implementation details of proximal policy
optimization": orthogonal weights, zero biases, a small last layer of the actor.

Legend: T steps, B environments, F features, H hidden, A outputs that parametrise an action's
distribution.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from ranks.rl.policies.distributions import Bernoulli, Categorical, DiagonalGaussian, Distribution, MultiCategorical
from ranks.rl.policies.recurrent import initial_lstm_state, unroll_lstm
from ranks.rl.pytree import State, Tree
from ranks.rl.running_mean_std import Normaliser

M = TypeVar("M", bound=nn.Module)


def orthogonal(layer: M, gain: float) -> M:
    """Initialise a layer with orthogonal weights of this gain and zero biases.

    Saxe et al. 2014, arXiv 1312.6120.
    """
    for name, parameter in layer.named_parameters():
        if "bias" in name:
            nn.init.zeros_(parameter)
        else:
            nn.init.orthogonal_(parameter, gain)
    return layer


class NatureCNN(nn.Module):
    """uint8 images [..., H, W, C], laid out as `dims` says (HWC, CHW, HW) -> features [..., F].

    The convolutions of Mnih et al. 2015, "Human-level control through deep reinforcement learning";
    a convolution whose kernel is larger than what is left of the image is omitted.
    """

    def __init__(self, shape: Sequence[int], dims: str, hidden: int) -> None:
        super().__init__()
        self.dims, by_name = dims, dict(zip(dims, shape, strict=True))
        sizes, layers, channels = [by_name["H"], by_name["W"]], list[nn.Module](), by_name.get("C", 1)
        for out, kernel, stride in ((32, 8, 4), (64, 4, 2), (64, 3, 1)):
            if min(sizes) >= kernel:
                layers += [orthogonal(nn.Conv2d(channels, out, kernel, stride), math.sqrt(2)), nn.ReLU()]
                sizes, channels = [(size - kernel) // stride + 1 for size in sizes], out
        flat = sizes[0] * sizes[1] * channels
        self.layers = nn.Sequential(*layers, nn.Flatten(), orthogonal(nn.Linear(flat, hidden), math.sqrt(2)), nn.ReLU())
        self.num_features = hidden

    def forward(self, pixels: Tensor) -> Tensor:
        if "C" not in self.dims:
            pixels = pixels[..., None]
        lead = pixels.shape[:-3]
        flat = pixels.reshape(-1, *pixels.shape[-3:])
        if self.dims != "CHW":
            flat = flat.permute(0, 3, 1, 2)
        return self.layers(flat.to(torch.get_default_dtype()) / 255.0).reshape(*lead, -1)


class Encoder(nn.Module):
    """Concatenates the tensors of an observation into one row of features [..., F].

    Boxes are flattened and normalised, discrete values are one-hot, images pass through a
    `NatureCNN`. `spaces`: by name, as `Space.to_json` gives them.
    """

    def __init__(self, spaces: Mapping[str, Mapping[str, Any]], hidden: int) -> None:
        super().__init__()
        self.spaces = {name: dict(space) for name, space in spaces.items()}
        self.pixels = nn.ModuleList()
        self.num_features, num_box_features = 0, 0
        for space in self.spaces.values():
            if space["kind"] == "image":
                self.pixels.append(NatureCNN(space["shape"], space["dims"], hidden))
                self.num_features += hidden
            elif space["kind"] == "box":
                num_box_features += math.prod(space["shape"])
            else:
                self.num_features += sum(space["sizes"])
        self.num_features += num_box_features
        self.normaliser = Normaliser(num_box_features)

    def box_features(self, obs: Tree) -> Tensor:
        """The numbers of all boxes, flattened, before they are normalised: [..., F].

        ValueError without a box.
        """
        boxes = [name for name, space in self.spaces.items() if space["kind"] == "box"]
        named = self.by_name(obs)
        return torch.cat([self._flat(named[name], len(self.spaces[name]["shape"])) for name in boxes], -1)

    @staticmethod
    def _flat(box: Tensor, dims: int) -> Tensor:
        return box.reshape(*box.shape[: box.ndim - dims], -1).to(torch.get_default_dtype())

    def by_name(self, obs: Tree) -> Mapping[str, Tensor]:
        """The tensors of an observation by name, also if it is a single tensor."""
        return {next(iter(self.spaces)): obs} if isinstance(obs, Tensor) else obs

    def forward(self, obs: Tree) -> Tensor:
        named, pixels = self.by_name(obs), iter(self.pixels)
        out: list[Tensor] = []
        for name, space in self.spaces.items():
            leaf = named[name]
            if space["kind"] == "image":
                out.append(next(pixels)(leaf))
            elif space["kind"] == "discrete":
                out.append(one_hot(leaf.long(), space["sizes"][0]).to(torch.get_default_dtype()))
            elif space["kind"] == "multi-discrete":
                parts = zip(leaf.long().unbind(-1), space["sizes"], strict=True)
                out.append(torch.cat([one_hot(p, n) for p, n in parts], -1).to(torch.get_default_dtype()))
            elif space["kind"] == "multi-binary":
                out.append(leaf.to(torch.get_default_dtype()))
        if self.normaliser.num_features:
            out.append(self.normaliser(self.box_features(obs)))
        return torch.cat(out, -1)


class ActorCritic(nn.Module):
    """A policy and value network for every supported space.

    Encoder -> two layers each (-> a shared LSTM) -> action distribution and value.

    `spaces`: the observation's spaces by name, `action`: the action's space, as `Space.to_json`
    gives them (`ranks.rl.gymnasium.spaces_of` gives both). `hidden`: the width of a layer.
    `lstm_hidden`: the hidden size of the LSTM that actor and critic share; 0: no LSTM.
    """

    def __init__(
        self,
        spaces: Mapping[str, Mapping[str, Any]],
        action: Mapping[str, Any],
        hidden: int = 64,
        lstm_hidden: int = 0,
    ) -> None:
        super().__init__()
        self.spaces, self.action, self.hidden, self.lstm_hidden = dict(spaces), dict(action), hidden, lstm_hidden
        self.encoder = Encoder(spaces, hidden)
        self.actor = self._mlp(self.encoder.num_features)
        self.critic = self._mlp(self.encoder.num_features)
        self.lstm = nn.LSTM(2 * hidden, lstm_hidden) if lstm_hidden else None
        if self.lstm is not None:
            orthogonal(self.lstm, 1.0)
        outputs = action["shape"][0] if action["kind"] == "box" else sum(action["sizes"])
        self.action_head = orthogonal(nn.Linear(lstm_hidden or hidden, outputs), 0.01)
        self.value_head = orthogonal(nn.Linear(lstm_hidden or hidden, 1), 1.0)
        self.log_std_A = nn.Parameter(torch.zeros(outputs if action["kind"] == "box" else 0))

    def _mlp(self, num_features: int) -> nn.Sequential:
        first = orthogonal(nn.Linear(num_features, self.hidden), math.sqrt(2))
        second = orthogonal(nn.Linear(self.hidden, self.hidden), math.sqrt(2))
        return nn.Sequential(first, nn.Tanh(), second, nn.Tanh())

    @property
    def normaliser(self) -> Normaliser:
        """The layer that normalises the boxes of an observation."""
        return self.encoder.normaliser

    def features_to_normalise(self, obs: Tree) -> Tensor:
        """The numbers that the layer gets: [..., F]."""
        return self.encoder.box_features(obs)

    def start_state(self, num_rows: int) -> State:
        """Zeros; an empty dict without an LSTM."""
        return {} if self.lstm is None else initial_lstm_state(self.lstm, num_rows)

    def act(self, obs: Tree, state: State) -> tuple[Distribution, Tensor, State]:
        """Do one step: see `Policy`."""
        features_BF = self.encoder(obs)
        actor_BH, critic_BH = self.actor(features_BF), self.critic(features_BF)
        if self.lstm is not None:
            both_1BH = torch.cat([actor_BH, critic_BH], -1)[None]
            hidden_1BH, state = unroll_lstm(self.lstm, both_1BH, state)
            actor_BH = critic_BH = hidden_1BH[0]
        return self.distribution(self.action_head(actor_BH)), self.value_head(critic_BH)[..., 0], state

    def unroll(self, obs: Tree, state: State, first_TB: Tensor | None) -> tuple[Distribution, Tensor]:
        """Do T steps: see `Policy`."""
        features_TBF = self.encoder(obs)
        actor_TBH, critic_TBH = self.actor(features_TBF), self.critic(features_TBF)
        if self.lstm is not None:
            both_TBH = torch.cat([actor_TBH, critic_TBH], -1)
            hidden_TBH, _ = unroll_lstm(self.lstm, both_TBH, state, first_TB)
            actor_TBH = critic_TBH = hidden_TBH
        return self.distribution(self.action_head(actor_TBH)), self.value_head(critic_TBH)[..., 0]

    def forward(self, obs: Tree, state: State) -> tuple[Tensor, Tensor, State]:
        """Do one step of an exported policy.

        Returns the most likely actions, clipped to their bounds, the value [B] and the next state.
        """
        distribution, value_B, state = self.act(obs, state)
        action_B = distribution.mode()
        if "low" in self.action:
            action_B = action_B.clamp(action_B.new_tensor(self.action["low"]), action_B.new_tensor(self.action["high"]))
        return action_B, value_B, state

    def distribution(self, outputs_A: Tensor) -> Distribution:
        """The distribution over actions from the outputs of the actor, [..., A]."""
        kind, sizes = self.action["kind"], tuple(self.action["sizes"])
        if kind == "box":
            return DiagonalGaussian.from_log_std(outputs_A, self.log_std_A)
        if kind == "discrete":
            return Categorical.from_logits(outputs_A)
        if kind == "multi-discrete":
            return MultiCategorical.from_logits(outputs_A, sizes)
        return Bernoulli.from_logits(outputs_A)
