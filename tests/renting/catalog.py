"""A small catalogue of SkyPilot, with the columns and spellings of the real one."""

from __future__ import annotations

from pathlib import Path

CATALOG = {
    "runpod": """\
InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Region,SpotPrice,Price,AvailabilityZone,GpuInfo
1x_B200_SECURE,B200,1.0,28,180,US,,5.98,US-CA-2,"{'Gpus': [{'MemoryInfo': {'SizeInMiB': 180}}]}"
8x_B200_SECURE,B200,8.0,224,1440,US,,47.84,US-CA-2,"{'Gpus': [{'MemoryInfo': {'SizeInMiB': 180}}]}"
1x_L4_SECURE,L4,1.0,12,50,US,0.2,0.39,US-CA-2,"{'Gpus': [{'MemoryInfo': {'SizeInMiB': 24}}]}"
8x_H200_SECURE,H200-SXM,8.0,224,1440,US,,,US-CA-2,
2x_CPU,,,2,8,US,,0.1,US-CA-2,
""",
    "lambda": """\
InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice
gpu_8x_b200_sxm6,B200,8.0,208.0,2900.0,39.92,us-east-1,"{'Gpus': [{'MemoryInfo': {'SizeInMiB': 184320}}]}",
""",
}


def write_catalog(folder: Path) -> Path:
    """FOLDER/CLOUD/vms.csv."""
    for cloud, text in CATALOG.items():
        (folder / cloud).mkdir(parents=True)
        (folder / cloud / "vms.csv").write_text(text)
    return folder
