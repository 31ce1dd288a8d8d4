"""A config that trains on a few small graphs in seconds."""

from __future__ import annotations

from ranks.workloads.graph_coloring.config import Config, DataConfig, ModelConfig

SMALL = Config(
    data=DataConfig(train_graphs=24, validation_graphs=8, unseen_graphs=6, max_nodes=16),
    model=ModelConfig(width=4, rounds=2, encoder_width=4, encoder_rounds=1),
    rounds=2,
    burn_in=2,
    global_batch=8,
    iterations=4,
    eval_every=1,
    eval_graphs=7,
    eval_rounds=4,
)
