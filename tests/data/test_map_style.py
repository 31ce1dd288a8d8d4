"""Map-style data sets: batches as torch's `default_collate` makes them, a hash of the data, errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import default_collate

from ranks import UserError
from ranks.data import collate, from_map_style
from tests.data.host_data import Noisy


class Pair(NamedTuple):
    x: Tensor
    y: float


@dataclass(frozen=True)
class Sample:
    x: Tensor
    label: int


def item(i: int) -> dict[str, Any]:
    return {
        "tensor": torch.arange(6).reshape(2, 3) + i,
        "array": np.full((2,), i, dtype=np.float32),
        "scalar": np.float64(i),
        "label": i,
        "weight": i / 2,
        "flag": i % 2 == 0,
        "name": f"item {i}",
        "place": np.array(["here", "there"])[i % 2],
        "pair": Pair(torch.zeros(2) + i, 0.5),
        "nested": [torch.tensor(i), (i, {"deep": i})],
    }


def same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor):
        return isinstance(b, Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, list | tuple):
        return isinstance(b, list | tuple) and len(a) == len(b) and all(map(same, a, b))  # torch makes tuples lists
    return a == b


def test_items_are_collated_as_by_torch() -> None:
    items = [item(i) for i in range(5)]
    found = collate(items)
    assert same(found, default_collate(items))
    assert isinstance(found["pair"], Pair)
    assert isinstance(found["nested"][1], tuple)
    batch = collate([Sample(torch.ones(2), 3), Sample(torch.zeros(2), 4)])
    assert isinstance(batch, Sample)
    assert same([batch.x, batch.label], [torch.tensor([[1.0, 1.0], [0.0, 0.0]]), torch.tensor([3, 4])])
    with pytest.raises(ValueError, match=r"different shapes \(\(2,\), \(3,\)\) do not stack: give a collate"):
        collate([torch.ones(2), torch.ones(3)])
    for items in ([{"x": 1, "y": 2}, {"x": 1}], [{"x": 1}, {"x": 1, "y": 2}]):
        with pytest.raises(ValueError, match="some items have y, others not"):
            collate(items)


def test_other_data_have_another_sha256() -> None:
    rows = [torch.tensor([float(i)]) for i in range(40)]
    before = from_map_style(rows).sha256
    assert from_map_style(list(rows)).sha256 == before
    assert from_map_style(rows[:-1]).sha256 != before
    assert from_map_style([rows[1], *rows[1:]]).sha256 != before
    assert from_map_style(rows, sha256="mine").sha256 == "mine"
    assert from_map_style(Noisy(), random=True).sha256 == from_map_style(Noisy(), random=True).sha256


def test_items_that_change_are_refused_unless_they_are_said_to_be_random() -> None:
    with pytest.raises(UserError, match=r"another one when it is read again\n.*random=True"):
        from_map_style(Noisy())
    assert from_map_style(Noisy(), sha256="mine").sha256 == "mine"


def test_a_batch_may_hold_a_tensor_without_dimensions() -> None:
    rows = [torch.ones(2), torch.zeros(2)]
    made = from_map_style(rows, collate=lambda items: {"x": torch.stack(list(items)), "count": torch.tensor(2.0)})
    assert made.sha256


def test_an_item_that_cannot_be_read_is_one_error() -> None:
    class Broken:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, item: int) -> Tensor:
            raise OSError("no such file")

    with pytest.raises(UserError, match=r"item 0 of the data set\nfound: OSError: no such file"):
        from_map_style(Broken())
