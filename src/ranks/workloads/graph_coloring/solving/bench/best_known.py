"""Best known numbers of colours of public instances, and whether they are proven optimal.

`best_known.csv` holds the DIMACS and COLOR02-04 instances. Values, nodes and edges are those of the
repository Cyril-Grelier/gc_instances (`best_scores_gcp.txt`, `instance_info_gcp.csv`, MIT), except
for queen15_15 and queen16_16 (Vasquez 2006, "On the queen graph coloring problem"), qg.order30 (a
row is a clique) and flat1000_76_0, whose 76 colours were planted and count as not proven here.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from ranks.bounded_file import read_text
from ranks.errors import UserError

SHIPPED = Path(__file__).parent / "best_known.csv"
COLUMNS = ("instance", "nodes", "edges", "best_known", "proven")


@dataclass(frozen=True)
class BestKnown:
    """The best known colouring of an instance. `proven`: no colouring has fewer colours.

    `nodes`, `edges`: the size of the graph, with each edge counted once; to recognise the instance.
    """

    nodes: int
    edges: int
    colours: int
    proven: bool

    def __str__(self) -> str:
        return f"{self.colours}*" if self.proven else str(self.colours)


def read_best_known(path: Path | None) -> dict[str, BestKnown]:
    """Best known values by instance, from a CSV file with the columns COLUMNS. Raises UserError.

    Without a path, the file that ships with the package.
    """
    asked = f"--best {path}"
    advice = f"give a CSV file with the columns {','.join(COLUMNS)}; proven is yes or no"
    table = csv.DictReader(read_text(path or SHIPPED, asked).splitlines())
    known: dict[str, BestKnown] = {}
    try:
        missing = [column for column in COLUMNS if column not in (table.fieldnames or ())]
        if missing:
            raise UserError(asked, f"no column {', '.join(missing)}", advice)
        for row in table:
            nodes, edges, colours = (int(row[column]) for column in COLUMNS[1:4])
            proven = {"yes": True, "no": False}[row["proven"]]
            known[row["instance"]] = BestKnown(nodes, edges, colours, proven)
    except (csv.Error, KeyError, TypeError, ValueError):
        raise UserError(asked, f"line {table.line_num} cannot be read", advice) from None
    return known
