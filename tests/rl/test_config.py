"""PPOConfig: values out of range, and the old names of its flags."""

from __future__ import annotations

from typing import Any

import pytest

from ranks import UserError
from ranks.cli.flags.advice import RENAMED_FLAGS
from ranks.cli.flags.settings import resolve
from ranks.rl import PPOConfig


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("epochs", 0), ("minibatches", 0), ("clip_range", 0.0), ("clip_range_vf", -1.0), ("vf_coef", -0.1)),
        *(("ent_coef", float("inf")), ("gamma", 1.1), ("gae_lambda", float("nan")), ("target_kl", 0.0)),
    ],
)
def test_a_value_out_of_range_is_rejected_with_its_flag(name: str, value: float) -> None:
    settings: dict[str, Any] = {name: value}
    with pytest.raises(UserError, match=f"asked: --ppo.{name.replace('_', '-')} {value}"):
        PPOConfig(**settings)


@pytest.mark.parametrize("old", [old for old in RENAMED_FLAGS if old.startswith("--ppo.")])
def test_an_old_flag_is_answered_with_its_new_name(old: str) -> None:
    with pytest.raises(UserError) as caught:
        resolve("stock-trading", [old, "1"])
    assert caught.value.do == f"give {RENAMED_FLAGS[old]}"
    resolve("stock-trading", [RENAMED_FLAGS[old], "none" if "advantage" in old else "1"])
