"""Prices: the shipped ones, those of files in both layouts, files that are refused, and the names of GPUs."""

from __future__ import annotations

import datetime
import gzip
import os
from dataclasses import replace
from pathlib import Path

import pytest

from ranks.errors import UserError
from ranks.hardware.catalogue.gpus import by_name, catalogue, find
from ranks.hardware.catalogue.price_file import Price, read_price_file
from ranks.hardware.catalogue.prices import age, known_prices, prices_of, read_prices

OURS = "provider,gpu,num_gpus,price_usd_per_gpu_hour,spot_usd_per_gpu_hour,date,source\n"
SKYPILOT = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Region,Price,SpotPrice\n"
TODAY = datetime.date(2026, 11, 23)


def info(size: int, total: int) -> str:
    return f"\"{{'Gpus': [{{'MemoryInfo': {{'SizeInMiB': {size}}}}}], 'TotalGpuMemoryInMiB': {total}}}\""


def written(folder: Path, text: str, name: str = "vms.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def skypilot_price(folder: Path, row: str) -> Price:
    (price,) = read_prices(written(folder, SKYPILOT + row + "\n"))
    return price


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("h200", "H200 SXM"),
        ("H100", "H100 SXM"),
        ("h100-pcie", "H100 PCIe"),
        ("H100 NVL", "H100 NVL"),
        ("a100", "A100 80GB SXM"),
        ("a100-80gb", "A100 80GB SXM"),
        ("A100-SXM4-40GB", "A100 40GB SXM"),
        ("rtx4090", "RTX 4090"),
        ("4090", "RTX 4090"),
        ("rtx6000ada", "RTX 6000 Ada"),
        ("b200", "B200"),
        ("mi300x", "MI300X"),
        ("l4", "L4"),
        ("L40S", "L40S"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("h200 nvl", "H200 NVL"),
        ("v100", "V100 32GB SXM2"),
        ("v100-16gb", "V100 16GB SXM2"),
        ("V100 PCIe", "V100 32GB PCIe"),
        ("A100-PCIE-40GB", "A100 40GB PCIe"),
    ],
)
def test_a_gpu_by_the_name_that_a_person_types(typed: str, name: str) -> None:
    assert by_name(typed).name == name


def test_every_gpu_has_its_own_name() -> None:
    assert [by_name(gpu.name) for gpu in catalogue()] == list(catalogue())
    assert find("NVIDIA GeForce RTX 4090") == by_name("rtx 4090")


@pytest.mark.parametrize(("typed", "meant"), [("gb200", "B200"), ("rtx409", "RTX 4090"), ("rtx 6000", "RTX 6000 Ada")])
def test_an_unknown_gpu_names_the_nearest(typed: str, meant: str) -> None:
    with pytest.raises(UserError) as caught:
        by_name(typed)
    assert caught.value.asked == f"the GPU '{typed}'"
    assert caught.value.do.startswith(f"did you mean {meant}? ")


@pytest.mark.parametrize("typed", ["", "-", "abacus", "h" * 100_000])
def test_a_name_without_a_near_one_lists_the_catalogue(typed: str) -> None:
    with pytest.raises(UserError) as caught:
        by_name(typed)
    assert "A100 40GB SXM, A100 80GB PCIe" in caught.value.do


def test_the_shipped_prices_name_catalogued_gpus_and_sources() -> None:
    prices = known_prices()
    assert len(prices) >= 20
    assert {by_name(name) for name in ("h100", "h200", "b200", "a100", "l4", "l40s", "mi300x")} <= {
        p.gpu for p in prices
    }
    for price in prices:
        assert price.usd_per_gpu_hour is not None
        assert price.spot_usd_per_gpu_hour is None or price.spot_usd_per_gpu_hour < price.usd_per_gpu_hour
        assert price.source
        assert "future" not in age(price, TODAY)


def test_the_price_of_a_machine_is_divided_by_its_gpus(tmp_path: Path) -> None:
    folder = tmp_path / "nebius"
    folder.mkdir()
    row = f"gpu-h100-sxm_8gpu,H100,8,128,1600,{info(81920, 655360)},eu-north1,23.60,10.00"
    price = skypilot_price(folder, row)
    assert (price.provider, price.gpu.name, price.num_gpus) == ("nebius", "H100 SXM", 8)
    assert price.usd_per_gpu_hour == 2.95
    assert price.spot_usd_per_gpu_hour == 1.25
    assert price.date == datetime.date.today().isoformat()


@pytest.mark.parametrize(
    ("row", "name"),
    [
        (f"gpu_1x_h100_pcie,H100,1.0,26,200,{info(81920, 81920)},us,3.29,", "H100 PCIe"),
        (f"2x-H100_NVL-32,H100,2,32,64,{info(191660, 191660)},AU,4.53,0.00", "H100 NVL"),
        (f"hyperstack__8xA100_80GB__NVLINK,A100-80GB,8,252,1920,{info(655360, 5242880)},CA,11.2,", "A100 80GB SXM"),
        (f"2x-A100_SXM4-32,A100,2,32,64,{info(81920, 81920)},SI,1.49,0.00", "A100 40GB SXM"),
        (f"ECS2GPU3,A100,2,32,240,{info(81920, 163840)},,1.98,", "A100 80GB SXM"),
        (f"2x_A100-80GB_SECURE,A100-80GB,2,16,234,{info(80, 160)},US,2.78,2.78", "A100 80GB SXM"),
        (f"1x-RTX_6000Ada,RTX6000-Ada,1,32,64,{info(49140, 49140)},JP,0.37,0.00", "RTX 6000 Ada"),
        (f"g6.xlarge,L4,1,4,16,{info(22888, 22888)},us,0.80,0.30", "L4"),
        (f"p3.2xlarge,V100,1,8,61,{info(16384, 16384)},us,3.06,0.92", "V100 16GB SXM2"),
        ("hyperstack__8xH100_80GB__NVLINK,H100,8,252,1440,,CA,15.6,", "H100 SXM"),
        ("no-info,B200,8,4,16,,us,44.00,", "B200"),
    ],
)
def test_the_gpu_of_a_skypilot_row(row: str, name: str, tmp_path: Path) -> None:
    assert skypilot_price(tmp_path, row).gpu.name == name


def test_a_skypilot_row_may_have_only_a_spot_price(tmp_path: Path) -> None:
    price = skypilot_price(tmp_path, f"8B200.240V,B200,8.0,240,1472,{info(184320, 1474560)},FIN-03,,13.69")
    assert price.usd_per_gpu_hour is None
    assert price.spot_usd_per_gpu_hour == pytest.approx(1.71125)


def test_rows_without_a_known_gpu_or_price_are_skipped_and_counted(tmp_path: Path) -> None:
    rows = [
        "cpu-small,,0,4,16,,eu,0.009,",
        f"1B300.30V,B300,1,30,275,{info(268288, 268288)},FIN,6.99,2.4",
        f"8x-V100,V100,8,32,64,{info(24576, 196608)},SE,0.85,",  # no V100 has 24 GB
        f"1x-RTX_4090,RTX4090,1,32,64,{info(49140, 49140)},HK,0.40,",  # a changed card with 48 GB
        f"gr6f,L4,0.5,8,64,{info(11444, 11444)},us,0.50,",
        f"none,L4,1,8,64,{info(22888, 22888)},us,,0.00",
        f"g6,L4,1,4,16,{info(22888, 22888)},us-east-1,0.80,0.30",
        f"g6,L4,1,4,16,{info(22888, 22888)},us-east-2,0.80,0.30",
    ]
    found = read_price_file(written(tmp_path, SKYPILOT + "\n".join(rows)))
    assert found.num_skipped == 6
    assert [(price.gpu.name, price.usd_per_gpu_hour) for price in found.prices] == [("L4", 0.8)]


def test_a_file_with_our_columns_in_any_order(tmp_path: Path) -> None:
    header = "date,gpu,num_gpus,note,price_usd_per_gpu_hour,spot_usd_per_gpu_hour,provider,source\n"
    path = written(tmp_path, "\ufeff" + header + '2026-09,h200,8,"a, b",3.5,1.5,Me,my bill\n')
    assert read_prices(path) == (Price("Me", by_name("h200"), 8, 3.5, 1.5, "2026-09", "my bill"),)


ROW = "Me,{gpu},{count},{price},{spot},{date},bill\n"


@pytest.mark.parametrize(
    ("fields", "found", "do"),
    [
        ({"price": "-1"}, "line 3: price_usd_per_gpu_hour is -1, below 0", "leave a price empty"),
        ({"price": "nan"}, "line 3: price_usd_per_gpu_hour is 'nan', not a number", "in digits"),
        ({"price": "1e999"}, "not a number", "in digits"),
        ({"price": "$2.99"}, "'$2.99', not a number", "such as 8 or 1.99"),
        ({"price": "299"}, "299 USD per GPU and hour", "check the unit"),
        ({"price": "0.0008"}, "0.0008 USD per GPU and hour", "check the unit"),
        ({"price": "0"}, "0 USD per GPU and hour", "check the unit"),
        ({"spot": "-0.5"}, "spot_usd_per_gpu_hour is -0.5, below 0", "leave a price empty"),
        ({"price": "2,99"}, "more or fewer columns than in the header line", "1.99 rather than 1,99"),
        ({"count": "many"}, "num_gpus is 'many', not a number", "in digits"),
        ({"count": "0"}, "num_gpus is 0", "a number of GPUs from 1"),
        ({"date": "2026-13"}, "date is '2026-13', not a date", "YYYY-MM-DD or YYYY-MM"),
        ({"date": "yesterday"}, "date is 'yesterday', not a date", "YYYY-MM-DD or YYYY-MM"),
    ],
)
def test_a_bad_value_is_one_error_with_its_line(fields: dict[str, str], found: str, do: str, tmp_path: Path) -> None:
    good = {"gpu": "h100", "count": "8", "price": "2.99", "spot": "", "date": "2026-09"}
    path = written(tmp_path, OURS + ROW.format(**good) + ROW.format(**{**good, **fields}))
    with pytest.raises(UserError) as caught:
        read_prices(path)
    assert caught.value.asked == f"the prices in {path}"
    assert found in caught.value.found
    assert do in caught.value.do


def test_a_monthly_price_in_a_skypilot_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"Price is 17228, which makes 2153\.5 USD per GPU and hour"):
        skypilot_price(tmp_path, f"h100-sxm,H100,8,128,1600,{info(81920, 655360)},eu,17228,")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "other columns: no column"),
        ("name,price\nh100,2\n", "other columns: name, price"),
        (OURS, "0 rows, none with a price"),
        (OURS + "Me,abacus,8,2.99,,2026-09,bill\n", "1 rows, none with a price"),
        (OURS + "Me,h100,8,,,2026-09,bill\n", "1 rows, none with a price"),
        (OURS + '"' + "x" * 200_000 + "\n", "not a CSV file: field larger than field limit"),
    ],
)
def test_a_file_without_a_usable_row(text: str, found: str, tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        read_prices(written(tmp_path, text))
    assert found in caught.value.found
    assert caught.value.do


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    binary = tmp_path / "binary.csv"
    binary.write_bytes(OURS.encode() + b"\xff\xfe,\xff\n")
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    bomb = tmp_path / "bomb.csv.gz"
    bomb.write_bytes(gzip.compress(OURS.encode() + bytes(2 << 20)))
    cases = {binary: "not UTF-8 text", pipe: "a named pipe", bomb: "a line of more than 1 MiB"}
    cases |= {tmp_path: "a folder", tmp_path / "missing.csv": "No such file"}
    for path, found in cases.items():
        with pytest.raises(UserError) as caught:
            read_prices(path)
        assert found in caught.value.found


def offer(usd: float | None, num_gpus: int = 8, spot: float | None = None) -> Price:
    return Price("P", by_name("h100"), num_gpus, usd, spot, "2026-09-20", "")


def test_cheapest_and_median_of_machines_with_that_many_gpus() -> None:
    prices = [offer(4.0), offer(2.0, spot=1.0), offer(3.5), offer(1.0, num_gpus=1), offer(None, 1, spot=0.5)]
    found = prices_of(by_name("h100"), 8, prices)
    assert found.on_demand is not None
    assert found.on_demand.cheapest == prices[1]
    assert (found.on_demand.cheapest_usd_per_gpu_hour, found.on_demand.median_usd_per_gpu_hour) == (2.0, 3.5)
    assert (found.on_demand.num_offers, found.on_demand.is_same_count) == (3, True)
    assert found.spot is not None
    assert (found.spot.cheapest_usd_per_gpu_hour, found.spot.num_offers, found.spot.is_same_count) == (1.0, 1, True)


def test_machines_of_other_sizes_where_none_has_that_many_gpus() -> None:
    found = prices_of(by_name("h100"), 2, [offer(4.0), offer(1.0, num_gpus=1)])
    assert found.on_demand is not None
    assert (found.on_demand.median_usd_per_gpu_hour, found.on_demand.is_same_count) == (2.5, False)
    assert found.spot is None
    assert prices_of(by_name("h200"), 8, [offer(4.0)]).on_demand is None


@pytest.mark.parametrize(
    ("date", "words"),
    [
        ("2026-11-23", "of today"),
        ("2026-11-22", "1 day old"),
        ("2026-10-20", "34 days old"),
        ("2026-08-24", "2 months old"),
        ("2026-08-23", "3 months old"),
        ("2026-11", "of this month"),
        ("2026-10", "1 month old"),
        ("2025-11", "12 months old"),
        ("2024-05-07", "2 years old"),
        ("2026-12-01", "dated 2026-12-01, in the future"),
    ],
)
def test_the_age_in_words(date: str, words: str) -> None:
    assert age(replace(offer(1.0), date=date), TODAY) == words
