"""The catalogued links: measured times come back, modelled ones lie between bounds, unknown ones are None."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from ranks.errors import UserError
from ranks.hardware.catalogue.gpus import by_name, catalogue
from ranks.hardware.catalogue.links import DERIVED, FILE, MEASURED, bandwidths, catalogued_link, network_link
from ranks.hardware.links.curve import Link

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def link(name: str, num_gpus: int) -> Link:
    found = catalogued_link(by_name(name), num_gpus)
    assert found is not None
    return found


def busbw_gbs(name: str, num_gpus: int, num_bytes: int) -> float:
    """The bus bandwidth as nccl-tests define it."""
    seconds = link(name, num_gpus).all_reduce_s(num_gpus, num_bytes)
    return num_bytes / seconds * 2 * (num_gpus - 1) / num_gpus / 1e9


@pytest.mark.parametrize(
    ("num_bytes", "microseconds"),
    [(32 * KIB, 47.8), (MIB, 50.9), (4 * MIB, 96.0), (16 * MIB, 115.2), (32 * MIB, 180.1), (64 * MIB, 293.2),
     (256 * MIB, 727.1), (GIB, 2597.7), (16 * GIB, 35551.3)],
)  # fmt: skip
def test_8_b200_take_the_measured_times(num_bytes: int, microseconds: float) -> None:
    assert link("b200", 8).all_reduce_s(8, num_bytes) * 1e6 == pytest.approx(microseconds, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "num_gpus", "gbs"),
    [("h200", 8, 482.26), ("h200", 4, 363.3), ("b200", 4, 673.2), ("h100", 8, 480), ("a100", 8, 215), ("5090", 8, 28),
     ("5090", 4, 35), ("mi300x", 8, 336), ("mi300x", 2, 48), ("b200", 32, 381.8)],
)  # fmt: skip
def test_large_tensors_reach_the_published_bandwidth(name: str, num_gpus: int, gbs: float) -> None:
    assert busbw_gbs(name, num_gpus, 16 * GIB) == pytest.approx(gbs, rel=1e-6)


@pytest.mark.parametrize("name", ["h100", "b200", "h200"])
@pytest.mark.parametrize("num_gpus", [2, 4, 8])
def test_the_bucket_of_32_mib_is_far_from_full_bandwidth(name: str, num_gpus: int) -> None:
    share = busbw_gbs(name, num_gpus, 32 * MIB) / busbw_gbs(name, num_gpus, 16 * GIB)
    assert 0.35 < share < 0.75


def test_a_slow_link_reaches_its_bandwidth_earlier() -> None:
    assert busbw_gbs("rtx5090", 8, 32 * MIB) > 0.9 * 28
    assert busbw_gbs("rtx5090", 8, MIB) < 0.5 * 28


def test_every_curve_rises_and_needs_no_less_than_the_latency() -> None:
    for gpu, num_gpus in itertools.product(catalogue(), range(1, 9)):
        found = catalogued_link(gpu, num_gpus)
        if found is None:
            continue
        (curve,) = found.device
        assert curve.num_ranks == max(num_gpus, 2)
        assert list(curve.num_bytes) == sorted(set(curve.num_bytes))
        assert list(curve.seconds) == sorted(curve.seconds)
        assert 15e-6 < curve.at(4) < 100e-6
        assert curve.at(GIB) > GIB / 1e12
        assert found.all_reduce_s(1, GIB) == 0
        assert found.source.startswith("catalogue: ")


def test_what_was_not_measured_is_derived_and_less_certain() -> None:
    card = link("rtx4090", 2)
    assert card.source == "catalogue: derived from PCIe 4 x16, 56% of it used"
    assert card.uncertainty == DERIVED
    assert busbw_gbs("rtx4090", 2, 16 * GIB) == pytest.approx(0.56 * 31.5)
    assert link("h100", 8).uncertainty == link("b200", 8).uncertainty == MEASURED
    assert link("h100", 4).uncertainty == DERIVED
    assert link("a100", 2).uncertainty == DERIVED
    assert link("a100", 2).source.endswith("(for 8 GPUs)")


def test_a_bridge_joins_two_gpus_only() -> None:
    assert busbw_gbs("h100 nvl", 2, GIB) > 100
    assert busbw_gbs("h100 nvl", 4, GIB) < 40
    assert busbw_gbs("a100 pcie", 8, GIB) < 21


def test_a_pcie_card_has_no_link_of_its_sxm_sister() -> None:
    assert link("A100-PCIE-40GB", 8).name == "PCIe 4, 8x A100 40GB PCIe"
    assert busbw_gbs("a100-pcie-40gb", 8, GIB) < 20
    assert busbw_gbs("a100-40gb", 8, 16 * GIB) == pytest.approx(215)


def test_unknown_links_are_none() -> None:
    assert catalogued_link(by_name("v100"), 8) is None
    assert catalogued_link(by_name("h200 nvl"), 4) is None
    assert catalogued_link(by_name("h100"), 16) is None
    assert catalogued_link(by_name("rtx4090"), 16) is None
    assert catalogued_link(replace(by_name("h200"), name="H900"), 8) is None


def test_every_row_belongs_to_a_gpu_of_the_catalogue() -> None:
    names = {line.split(",")[0] for line in FILE.read_text(encoding="utf-8").splitlines()[1:]}
    assert names <= {gpu.name for gpu in catalogue()}
    assert all(row.source for name in names for row in bandwidths(name))


def test_small_values_go_through_the_host() -> None:
    found = link("h100", 8)
    assert 0.1e-3 < found.all_reduce_s(2, 4, on_host=True) < 0.19e-3
    assert found.all_reduce_s(2, 10_000_000, on_host=True) == pytest.approx(3.3e-3, rel=0.1)
    assert found.all_reduce_s(8, 4, on_host=True) > found.all_reduce_s(2, 4, on_host=True)


@pytest.mark.parametrize(("gbit_per_s", "milliseconds"), [(0.1, 832), (1, 81.5)])
def test_ethernet_as_it_was_measured(gbit_per_s: float, milliseconds: float) -> None:
    """gloo, 10 MB between two ranks."""
    assert network_link(gbit_per_s).all_reduce_s(2, 10_000_000) * 1e3 == pytest.approx(milliseconds, rel=0.03)


def test_a_faster_network_is_faster_and_never_beats_its_rate() -> None:
    rates = [0.1, 1, 10, 25, 100, 400, 1600]
    links = [network_link(rate) for rate in rates]
    times = [found.all_reduce_s(4, 100_000_000) for found in links]
    assert times == sorted(times, reverse=True)
    assert all(time > 1.5 * 1e8 / (rate * 1e9 / 8) for rate, time in zip(rates, times, strict=True))
    assert all(found.uncertainty == DERIVED and found.all_reduce_s(2, 4, on_host=True) >= 0.2e-3 for found in links)
    assert "10 Gbit/s, 85% of it used" in links[2].source


@pytest.mark.parametrize("gbit_per_s", [0, -1, math.nan, math.inf, 1e-9])
def test_a_rate_that_is_none(gbit_per_s: float) -> None:
    with pytest.raises(UserError) as caught:
        network_link(gbit_per_s)
    assert "Gbit/s" in caught.value.asked
    assert "such as 10" in caught.value.do
