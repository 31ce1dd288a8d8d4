"""Distributions over actions: frozen data, drawn from with uniforms that belong to an environment and an iteration.

`torch.distributions` draws from a generator that advances; these take their randomness as an argument, so that nobody's
luck depends on who computes it. Logarithms of probabilities are in float32 or wider, whatever the net computes in.

Legend: ... any leading dimensions, A actions or their parts, K choices of one part, U uniforms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, Self

import torch
from torch import Tensor
from torch.nn.functional import softplus


class Distribution(Protocol):
    """Over the actions of a batch of states."""

    @property
    def num_draws(self) -> int:
        """Uniforms that one sample of one state takes."""
        ...

    def sample(self, uniform: Tensor) -> Tensor:
        """float64[..., U] in [0, 1) -> actions."""
        ...

    def log_prob(self, action: Tensor) -> Tensor:
        """Of each state's action, [...]."""
        ...

    def entropy(self) -> Tensor:
        """In nats, [...]."""
        ...

    def mode(self) -> Tensor:
        """The likeliest action of each state."""
        ...


@dataclass(frozen=True)
class Categorical:
    """One choice of K. `log_prob_K`: float[..., K], normalised."""

    log_prob_K: Tensor

    @classmethod
    def of(cls, logits_K: Tensor) -> Self:
        return cls(wide(logits_K).log_softmax(-1))

    @property
    def num_draws(self) -> int:
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
    """Independent choices, one of each part; actions are int64[..., A]."""

    parts: tuple[Categorical, ...]

    @classmethod
    def of(cls, logits: Tensor, sizes: tuple[int, ...]) -> Self:
        """`logits`: [..., sum of sizes], the parts side by side."""
        return cls(tuple(Categorical.of(part) for part in logits.split(sizes, -1)))

    @property
    def num_draws(self) -> int:
        return sum(part.num_draws for part in self.parts)

    def sample(self, uniform: Tensor) -> Tensor:
        pieces = uniform.split([part.num_draws for part in self.parts], -1)
        return torch.stack([part.sample(u) for part, u in zip(self.parts, pieces, strict=True)], -1)

    def log_prob(self, action: Tensor) -> Tensor:
        return sum_of([part.log_prob(action[..., i]) for i, part in enumerate(self.parts)])

    def entropy(self) -> Tensor:
        return sum_of([part.entropy() for part in self.parts])

    def mode(self) -> Tensor:
        return torch.stack([part.mode() for part in self.parts], -1)


@dataclass(frozen=True)
class DiagonalGaussian:
    """Independent normals, float[..., A] each. Actions are not clipped here: the environment clips what it carries out,
    and the probability stays that of what was drawn."""

    mean_A: Tensor
    log_std_A: Tensor

    @classmethod
    def of(cls, mean_A: Tensor, log_std_A: Tensor) -> Self:
        """`log_std_A`: [A] or like the mean."""
        mean_A = wide(mean_A)
        return cls(mean_A, log_std_A.to(mean_A.dtype).expand_as(mean_A))

    @property
    def num_draws(self) -> int:
        return 2 * self.mean_A.shape[-1]

    def sample(self, uniform: Tensor) -> Tensor:
        """Box & Muller 1958; computed in float64."""
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
class Bernoullis:
    """Independent bits; actions are float[..., A] of 0 and 1."""

    logits_A: Tensor

    @property
    def num_draws(self) -> int:
        return self.logits_A.shape[-1]

    def sample(self, uniform: Tensor) -> Tensor:
        return (uniform < self.logits_A.sigmoid()).to(self.logits_A.dtype)

    def log_prob(self, action: Tensor) -> Tensor:
        return -softplus(torch.where(action > 0.5, -self.logits_A, self.logits_A)).sum(-1)

    def entropy(self) -> Tensor:
        return (softplus(self.logits_A) - self.logits_A * self.logits_A.sigmoid()).sum(-1)

    def mode(self) -> Tensor:
        return (self.logits_A > 0).to(self.logits_A.dtype)


def wide(tensor: Tensor) -> Tensor:
    """In float32 where it is narrower."""
    return tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor


def sum_of(tensors: list[Tensor]) -> Tensor:
    """In their order."""
    total = tensors[0]
    for tensor in tensors[1:]:
        total = total + tensor
    return total
