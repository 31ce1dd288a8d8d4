"""The machines in SkyPilot's catalogue: FOLDER/CLOUD/vms.csv, as SkyPilot downloads it to ~/.sky/catalogs/VERSION."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks.bounded_file import open_file
from ranks.errors import UserError, nearest
from ranks.hardware.catalogue.gpus import Gpu
from ranks.hardware.catalogue.skypilot import gpu_of_row
from ranks.renting.request import Machine

HOME = Path("~/.sky/catalogs")
FILE = "vms.csv"
COLUMNS = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price")


@dataclass(frozen=True)
class SkyOffer:
    """One kind of machine. `accelerator`: the GPU as SkyPilot writes it, empty without one. Prices are of the whole
    machine, an hour."""

    cloud: str
    instance: str
    accelerator: str
    gpu: Gpu | None
    count: int
    cpus: float
    price: float | None
    spot_price: float | None
    region: str


def catalogue_folder(given: Path | None, asked: str) -> Path:
    """The folder that holds a folder for each cloud. Raises UserError where there is none."""
    folder = (given or HOME).expanduser()
    versions = sorted((path for path in folder.glob("v*") if path.is_dir()), key=lambda path: (len(path.name), path))
    for found in (*reversed(versions), folder):
        if any(found.glob(f"*/{FILE}")):
            return found
    do = "run `sky show-gpus` once, which downloads it, or give --catalog FOLDER with CLOUD/vms.csv"
    raise UserError(asked, f"{folder} holds no catalogue of SkyPilot, so nothing can be checked", do)


def clouds_in(folder: Path) -> list[str]:
    """The clouds of a catalogue."""
    return sorted(path.parent.name for path in folder.glob(f"*/{FILE}"))


def read_offers(folder: Path, cloud: str) -> list[SkyOffer]:
    """The machines of one cloud. Raises UserError where the file is no catalogue."""
    path = folder / cloud / FILE
    asked = f"the catalogue {path}"
    offers = list[SkyOffer]()
    with open_file(path, asked) as file, io.TextIOWrapper(file, "utf-8-sig", errors="replace", newline="") as text:
        rows = csv.DictReader(text)
        missing = [column for column in COLUMNS if column not in (rows.fieldnames or ())]
        if missing:
            found = f"the column {missing[0]} is missing"
            raise UserError(asked, found, "give a catalogue of SkyPilot, or let `sky show-gpus` download it again")
        for row in rows:
            name, count = (row["AcceleratorName"] or "").strip(), _number(row["AcceleratorCount"])
            if name and (count is None or count != int(count)):
                continue  # a part of a GPU
            machine, whole = row["InstanceType"] or "", int(count or 0) if name else 0
            gpu = gpu_of_row(name, whole, machine, row.get("GpuInfo") or "") if name else None
            cpus, price, spot = (_number(row.get(column)) for column in ("vCPUs", "Price", "SpotPrice"))
            offers.append(SkyOffer(cloud, machine, name, gpu, whole, cpus or 0, price, spot, row.get("Region") or ""))
    return offers


def choose(offers: Sequence[SkyOffer], machine: Machine, *, spot: bool, asked: str) -> SkyOffer:
    """The cheapest machine with exactly so many of these GPUs, or with enough cores. Raises UserError with what comes
    nearest."""
    clouds = ", ".join(sorted({offer.cloud for offer in offers})) or "the catalogue"
    gpu, word, count = machine.gpu, machine.gpu_word, machine.ranks
    if gpu is None:
        fitting = [offer for offer in offers if not offer.accelerator and offer.cpus >= count]
        if not fitting:
            most = max((offer.cpus for offer in offers if not offer.accelerator), default=0)
            raise UserError(asked, f"{clouds} has no machine with {count} cores and no GPU", f"it has up to {most:g}")
    else:
        of_gpu = [offer for offer in offers if offer.gpu == gpu or offer.accelerator.lower() == word]
        if not of_gpu:
            names = sorted({offer.accelerator for offer in offers if offer.accelerator})
            do = nearest(word, names, f"offered: {', '.join(names[:20]) or 'no GPU'}")
            raise UserError(asked, f"{clouds} has no machine with {gpu.name}", do)
        counts = ", ".join(map(str, sorted({offer.count for offer in of_gpu})))
        fitting = [offer for offer in of_gpu if offer.count == count]
        if not fitting:
            raise UserError(
                asked, f"{clouds} has machines with {counts} x {gpu.name}, not {count}", "give one of these"
            )
    priced = [(price, offer) for offer in fitting if (price := offer.spot_price if spot else offer.price)]
    if not priced:
        found = f"{clouds} lists no {'spot ' if spot else ''}price for {machine.words}"
        raise UserError(asked, found, "leave --spot out" if spot else "give --price, of one machine an hour")
    return min(priced, key=lambda pair: (pair[0], pair[1].instance, pair[1].region))[1]


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None
