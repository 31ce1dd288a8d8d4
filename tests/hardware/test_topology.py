"""What joins the GPUs of a machine, from tables that `nvidia-smi topo -m` has printed on real ones."""

from __future__ import annotations

import pytest

from ranks.hardware.doctor.finding import Severity
from ranks.hardware.doctor.topology import Topology, judge_topology, parse_topology

LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NV#  = Connection traversing a bonded set of # NVLinks
"""
ALL_NVLINK = """\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV12\tNV12\tNV12\tSYS\t32-63,96-127\t1\t\tN/A
GPU1\tNV12\t X \tNV12\tNV12\tSYS\t32-63,96-127\t1\t\tN/A
GPU2\tNV12\tNV12\t X \tNV12\tSYS\t32-63,96-127\t1\t\tN/A
GPU3\tNV12\tNV12\tNV12\t X \tSYS\t32-63,96-127\t1\t\tN/A
NIC0\tSYS\tSYS\tSYS\tSYS\t X \t\t\t\t
"""
CUBE_MESH = """\tGPU0\tGPU1\tGPU2\tGPU3\tGPU4\tGPU5\tGPU6\tGPU7\tmlx5_0\tCPU Affinity\tNUMA Affinity
GPU0\tX\tNV1\tNV2\tNV1\tSYS\tSYS\tSYS\tNV2\tNODE\t0-23,48-71\t0
GPU1\tNV1\tX\tNV1\tNV2\tSYS\tSYS\tNV2\tSYS\tNODE\t0-23,48-71\t0
GPU2\tNV2\tNV1\tX\tNV2\tSYS\tNV1\tSYS\tSYS\tPIX\t0-23,48-71\t0
GPU3\tNV1\tNV2\tNV2\tX\tNV1\tSYS\tSYS\tSYS\tPIX\t0-23,48-71\t0
GPU4\tSYS\tSYS\tSYS\tNV1\tX \tNV2\tNV2\tNV1\tSYS\t24-47,72-95\t1
GPU5\tSYS\tSYS\tNV1\tSYS\tNV2\tX \tNV1\tNV2\tSYS\t24-47,72-95\t1
GPU6\tSYS\tNV2\tSYS\tSYS\tNV2\tNV1\tX \tNV1\tSYS\t24-47,72-95\t1
GPU7\tNV2\tSYS\tSYS\tSYS\tNV1\tNV2\tNV1\tX \tSYS\t24-47,72-95\t1
mlx5_0\tNODE\tNODE\tPIX\tPIX\tSYS\tSYS\tSYS\tSYS\tX\t\t
"""
ONE_NODE = """\t\x1b[4mGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNODE\t28-55,84-111\t1\t\tN/A
GPU1\tNODE\t X \t28-55,84-111\t1\t\tN/A
"""
ONE_CARD = "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-7\t0\t\tN/A\n"


def test_eight_v100_as_a_cube_mesh() -> None:
    found = parse_topology(CUBE_MESH + LEGEND)
    assert found is not None
    assert {way: len(pairs) for way, pairs in found.pairs().items()} == {"NV1": 8, "NV2": 8, "SYS": 12}
    assert found.without_nvlink() == []
    (finding,) = judge_topology(CUBE_MESH + LEGEND, ["Tesla V100-SXM2-32GB"] * 8)
    assert finding.severity == Severity.OK, "not all pairs of this machine have a link"
    assert "0-1, 0-3, 1-2, 2-5, 3-4, 4-7 and 2 more by NVLink (1 links)" in finding.found
    assert "by PCIe and the link between CPU sockets (SYS)" in finding.found


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        (ALL_NVLINK + LEGEND, "NVIDIA A100-SXM4-80GB", "all 4 cards are joined by NVLink (12 links)"),
        (ONE_NODE, "NVIDIA A100-PCIE-40GB", "all 2 cards are joined by the PCIe host bridges of one NUMA node (NODE)"),
    ],
)
def test_cards_that_are_joined_as_their_data_sheet_says(text: str, name: str, said: str) -> None:
    found = parse_topology(text)
    assert found is not None
    (finding,) = judge_topology(text, [name] * len(found.ways))
    assert (finding.severity, finding.found) == (Severity.OK, said)


def test_cards_with_nvlink_that_has_no_link() -> None:
    (finding,) = judge_topology(ONE_NODE + LEGEND, ["NVIDIA H100 80GB HBM3"] * 2)
    assert finding.severity == Severity.WARNING
    assert finding.found.startswith("no NVLink joins the cards 0, 1 to others: all 2 cards are joined by the PCIe host")
    assert "nvidia-smi nvlink -s" in finding.do


def test_one_card_is_joined_to_none() -> None:
    assert parse_topology(ONE_CARD) == Topology((("X",),))
    assert list(judge_topology("", ["NVIDIA L4"])) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "No devices were found\n",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
        "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV12\t0-31\n",
        "\tGPU0\tGPU1\nGPU0\t X \tFAST\nGPU1\tFAST\t X \n",
        "\tGPU0\tGPU1\nGPU0\tX\nGPU1\tX\tX\n",
        ALL_NVLINK,
    ],
    ids=["nothing", "no devices", "no driver", "a row is missing", "a new word", "a short row", "more cards"],
)
def test_what_is_not_understood_is_unknown(text: str) -> None:
    (finding,) = judge_topology(text, ["NVIDIA H100 80GB HBM3"] * 2)
    assert (finding.severity, finding.topic) == (Severity.NOTE, "topology")
    assert "unknown" in finding.found
