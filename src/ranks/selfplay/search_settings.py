"""The settings of the tree search: in self-play with noise, in matches and evaluations without."""

from __future__ import annotations

from dataclasses import replace

from ranks.search.config import SearchConfig
from ranks.selfplay.config import SelfPlayConfig

CONSIDERED, SIMULATIONS_OF_A_MOVE = 16, 4
"""In matches Gumbel search considers up to 16 moves of the root, as many as in Danihelka et al. 2022, where each of
them has 4 simulations on the mean. Training with few simulations considers fewer. With 64 simulations, 8 considered
moves were weaker than 16 and drew won games (chess-spiking, preset small; the log has the scores)."""


def search_config(cfg: SelfPlayConfig, seed: int) -> SearchConfig:
    """The search of self-play."""
    noise = cfg.dirichlet_fraction if cfg.search == "puct" else 0.0
    return SearchConfig(
        simulations=1 if cfg.search == "none" else cfg.simulations,
        root="gumbel" if cfg.search == "gumbel" else "puct",
        dirichlet_alpha=cfg.dirichlet_alpha,
        dirichlet_fraction=noise,
        num_considered=cfg.num_considered,
        gumbel_scale=cfg.gumbel_scale,
        c_scale=cfg.c_scale,
        rescale_values=cfg.rescale_values,
        reuse=cfg.reuse_tree and cfg.search != "none",
        seed=seed,
    )


def match_search(cfg: SelfPlayConfig, simulations: int) -> SearchConfig:
    """The search of a net that was trained with `cfg`, without noise and with another number of simulations.

    It keeps its tree from move to move. A position and its history always give the same move. Gumbel search, where
    self-play had none. It considers more moves than training where `simulations` are enough.
    """
    root = "puct" if cfg.search == "puct" else "gumbel"
    without_noise = replace(search_config(cfg, seed=0), dirichlet_fraction=0.0, gumbel_scale=0.0)
    considered = max(cfg.num_considered, min(CONSIDERED, simulations // SIMULATIONS_OF_A_MOVE))
    return replace(without_noise, simulations=max(simulations, 1), num_considered=considered, root=root, reuse=True)
