"""What `ranks scale` measured of a run's workload, for its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ranks.cli.scaling.plot import draw
from ranks.cli.scaling.table import laws_in_words, limits, table
from ranks.engine.files.jsonl import number
from ranks.engine.files.regular import DamagedFile
from ranks.engine.files.strict_json import read_object
from ranks.errors import UserError
from ranks.hardware.scale.law import ScalabilityLaw
from ranks.hardware.scale.loss import Point
from ranks.hardware.scale.split import Parts

FILE, PICTURE = "scale.json", "scale.png"
WRITTEN_BY = "ranks scale WORKLOAD --gpus 1,2,4 --out DIR writes it"


@dataclass(frozen=True)
class MeasuredScaling:
    """Several numbers of ranks, from the file of `ranks scale`."""

    workload: str
    device: str
    unit: str
    """GPUs or ranks."""
    points: Sequence[Point]
    laws: Mapping[str, ScalabilityLaw]

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> MeasuredScaling:
        """From the file's JSON. Raises KeyError, TypeError and ValueError where it has another form."""
        points = [_point(row) for row in content["points"]]
        if len(points) < 2:
            raise ValueError("fewer than two points")
        laws = {
            str(kind): ScalabilityLaw(_number(law, "contention"), _number(law, "coherency"))
            for kind, law in content["laws"].items()
        }
        return cls(str(content["workload"]), str(content["device"]), str(content["unit"]), points, laws)

    def text(self) -> str:
        """The table, what limits the speed, and the laws."""
        lines = [*limits(self.points, self.unit), *laws_in_words(self.laws, self.unit)]
        return "\n".join([f"measured on {self.device}", "", table(self.points, self.unit), "", *lines])

    def draw(self, folder: Path) -> Path:
        """The picture of `ranks scale`, in this folder."""
        path = folder / PICTURE
        draw(self.points, self.unit, f"{Path(self.workload).stem} on {self.device}", path)
        return path


def scaling_of(workload: str, given: Path | None, folder: Path) -> MeasuredScaling | None:
    """What was measured of a run's workload; None where nothing was given and the folder of the run has no file of it.

    `given`: the file, or the folder of `ranks scale --out`. Raises UserError: no such file, or of something else.
    """
    path = folder if given is None else given
    path = path / FILE if path.is_dir() else path
    if given is None and not path.exists():
        return None
    asked = f"--scale {path}"
    try:
        found = MeasuredScaling.of(read_object(path, follow=True))
    except DamagedFile as damage:
        raise UserError(asked, str(damage), WRITTEN_BY) from damage
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        wrong = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise UserError(asked, f"no measurement of several numbers of ranks: {wrong}", WRITTEN_BY) from error
    if Path(found.workload).stem != Path(workload).stem:
        do = f"give the file of {workload}: ranks scale {workload} --gpus 1,2,4 --out DIR"
        raise UserError(asked, f"it is of {found.workload}, and the run is of {workload}", do)
    return found


def _point(row: Mapping[str, Any]) -> Point:
    kind = row["scaling"]
    if kind not in ("strong", "weak"):
        raise ValueError(f"scaling is {kind!r}")
    found = Point(
        scaling=kind,
        num_ranks=int(_number(row, "num_ranks")),
        seconds=_parts(row["seconds"]),
        items_per_s={str(item): _number(row["items_per_s"], item) for item in row["items_per_s"]},
        speedup=_number(row, "speedup"),
        efficiency=_number(row, "efficiency"),
        efficiency_low=_number(row, "efficiency_low"),
        efficiency_high=_number(row, "efficiency_high"),
        lost=_parts(row["lost"]),
        peak_bytes=int(_number(row, "peak_bytes")),
        iterations=int(_number(row, "iterations")),
        collectives=int(_number(row, "collectives")),
    )
    if min(found.num_ranks, found.efficiency) <= 0:
        raise ValueError("num_ranks and efficiency must be above 0")
    return found


def _parts(row: Mapping[str, Any]) -> Parts:
    return Parts(**{part.name: _number(row, part.name) for part in fields(Parts)})


def _number(row: Mapping[str, Any], name: str) -> float:
    found = number(row, name)
    if found is None:
        raise ValueError(f"{name} is no number")
    return found
