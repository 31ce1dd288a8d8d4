"""Action distributions, sampled with uniform random numbers that the caller passes in.

They correspond to `torch.distributions`, which draws from a generator whose state advances. Here
the random numbers are an argument, a function of (iteration, environment id), so a sample does not
depend on which rank computes it. Log-probabilities are computed in float32 or wider, whatever the
precision of the net.

Legend: ... any leading dimensions, A actions or parts of an action, K choices of one part, U
uniform random numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, Self

import torch
from torch import Tensor
from torch.nn.functional import softplus


class Distribution(Protocol):
    """A distribution over actions for each state of a batch [...]."""

    @property
    def num_uniforms(self) -> int:
        """U: how many uniform random numbers one sample needs."""
        ...

    def sample(self, uniform: Tensor) -> Tensor:
        """Draw an action for each state from float64[..., U] in [0, 1)."""
        ...

    def log_prob(self, action: Tensor) -> Tensor:
        """The log-probability (or log-density) of each state's action, [...]."""
        ...

    def entropy(self) -> Tensor:
        """The entropy in nats, [...]."""
        ...

    def mode(self) -> Tensor:
        """The most likely action of each state."""
        ...


@dataclass(frozen=True)
class Categorical:
    """One choice of K (`torch.distributions.Categorical`); actions are int64[...]."""

    log_prob_K: Tensor
    """float[..., K], normalised."""

    @classmethod
    def from_logits(cls, logits_K: Tensor) -> Self:
        """`logits_K`: float[..., K]."""
        return cls(at_least_float32(logits_K).log_softmax(-1))

    @property
    def num_uniforms(self) -> int:
        return self.log_prob_K.shape[-1]

    def sample(self, uniform: Tensor) -> Tensor:
        """The arg max of log-probabilities + Gumbel noise (Gumbel 1954): int64[...]."""
        return (self.log_prob_K - torch.log(-torch.log(uniform + 2.0**-54))).argmax(-1)

    def log_prob(self, action: Tensor) -> Tensor:
        return self.log_prob_K.gather(-1, action[..., None].to(torch.int64))[..., 0]

    def entropy(self) -> Tensor:
        return -(self.log_prob_K.exp() * self.log_prob_K.clamp(min=torch.finfo(self.log_prob_K.dtype).min)).sum(-1)

    def mode(self) -> Tensor:
        return self.log_prob_K.argmax(-1)


@dataclass(frozen=True)
class MultiCategorical:
    """Independent choices, one for each part; actions are int64[..., A]."""

    parts: tuple[Categorical, ...]

    @classmethod
    def from_logits(cls, logits: Tensor, sizes: tuple[int, ...]) -> Self:
        """`logits`: float[..., sum of sizes], the parts one after another."""
        return cls(tuple(Categorical.from_logits(part) for part in logits.split(sizes, -1)))

    @property
    def num_uniforms(self) -> int:
        return sum(part.num_uniforms for part in self.parts)

    def sample(self, uniform: Tensor) -> Tensor:
        pieces = uniform.split([part.num_uniforms for part in self.parts], -1)
        return torch.stack([part.sample(u) for part, u in zip(self.parts, pieces, strict=True)], -1)

    def log_prob(self, action: Tensor) -> Tensor:
        return sum_in_order([part.log_prob(action[..., i]) for i, part in enumerate(self.parts)])

    def entropy(self) -> Tensor:
        return sum_in_order([part.entropy() for part in self.parts])

    def mode(self) -> Tensor:
        return torch.stack([part.mode() for part in self.parts], -1)


@dataclass(frozen=True)
class DiagonalGaussian:
    """Independent normal distributions; actions are float[..., A].

    Samples are not clipped: the environment clips the action it executes, and the log-probability
    remains that of the sample.
    """

    mean_A: Tensor
    log_std_A: Tensor

    @classmethod
    def from_log_std(cls, mean_A: Tensor, log_std_A: Tensor) -> Self:
        """`mean_A`: float[..., A].

        `log_std_A`: the logarithm of the standard deviations, [A] or [..., A].
        """
        mean_A = at_least_float32(mean_A)
        return cls(mean_A, log_std_A.to(mean_A.dtype).expand_as(mean_A))

    @property
    def num_uniforms(self) -> int:
        return 2 * self.mean_A.shape[-1]

    def sample(self, uniform: Tensor) -> Tensor:
        """The transform of Box & Muller 1958, with noise computed in float64."""
        a, b = uniform.chunk(2, -1)
        noise_A = torch.sqrt(-2.0 * torch.log1p(-a)) * torch.cos(2.0 * math.pi * b)
        return self.mean_A + self.log_std_A.exp() * noise_A.to(self.mean_A.dtype)

    def log_prob(self, action: Tensor) -> Tensor:
        z_A = (action.to(self.mean_A.dtype) - self.mean_A) * torch.exp(-self.log_std_A)
        return (-0.5 * z_A.square() - self.log_std_A - 0.5 * math.log(2.0 * math.pi)).sum(-1)

    def entropy(self) -> Tensor:
        return (self.log_std_A + 0.5 * math.log(2.0 * math.pi * math.e)).sum(-1)

    def mode(self) -> Tensor:
        return self.mean_A


@dataclass(frozen=True)
class Bernoulli:
    """Independent bits (`torch.distributions.Bernoulli`); actions are float[..., A] of 0 and 1."""

    logits_A: Tensor

    @classmethod
    def from_logits(cls, logits_A: Tensor) -> Self:
        """`logits_A`: float[..., A], the log-odds of 1."""
        return cls(at_least_float32(logits_A))

    @property
    def num_uniforms(self) -> int:
        return self.logits_A.shape[-1]

    def sample(self, uniform: Tensor) -> Tensor:
        return (uniform < self.logits_A.sigmoid()).to(self.logits_A.dtype)

    def log_prob(self, action: Tensor) -> Tensor:
        return -softplus(torch.where(action > 0.5, -self.logits_A, self.logits_A)).sum(-1)

    def entropy(self) -> Tensor:
        return (softplus(self.logits_A) - self.logits_A * self.logits_A.sigmoid()).sum(-1)

    def mode(self) -> Tensor:
        return (self.logits_A > 0).to(self.logits_A.dtype)


def at_least_float32(tensor: Tensor) -> Tensor:
    """Convert bfloat16 and float16 to float32; leave wider types."""
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor


def sum_in_order(tensors: list[Tensor]) -> Tensor:
    """Add tensors from first to last."""
    total = tensors[0]
    for tensor in tensors[1:]:
        total = total + tensor
    return total
