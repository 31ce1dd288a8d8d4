"""GraphML files: vertices in the order of their `node` elements, directed edges folded, all data left aside.

Format: Brandes et al. 2002, "GraphML progress report". Nothing is expanded: a document type with entities is refused.
"""

from __future__ import annotations

from xml.etree import ElementTree

from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.graphs.source import Source


def parse_graphml(source: Source) -> Graph:
    """The graph of a GraphML text. Raises UserError."""
    elements = _Elements(source)
    parser = ElementTree.XMLParser(target=elements)
    try:
        parser.feed(source.data)
        parser.close()
    except ElementTree.ParseError as error:
        source.refuse(error.position[0], "no well-formed XML", "write the file again, or fetch it again")
    place = {name: number for number, name in enumerate(elements.nodes)}
    if len(place) < len(elements.nodes):
        source.refuse(None, "two nodes with one id", "give each node an id of its own")
    pairs: list[tuple[int, int]] = []
    num_loops = 0
    for u, v in elements.edges:
        for name in (u, v):
            if name not in place:
                source.refuse(None, f"an edge of node '{name[:40]}', which is not there", "add it, or drop the edge")
        if u == v:
            source.meet_self_loop(None, u)
            num_loops += 1
        else:
            pairs.append((place[u], place[v]))
    source.check_size(None, len(place), len(pairs))
    return source.graph(len(place), pairs, num_loops)


class _Elements:
    """What the parser tells: ids of nodes, and the two ends of each edge."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.nodes: list[str] = []
        self.edges: list[tuple[str, str]] = []
        self.graphs = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        match tag.rpartition("}")[2]:
            case "node":
                self.nodes.append(attributes.get("id", ""))
            case "edge":
                self.edges.append((attributes.get("source", ""), attributes.get("target", "")))
            case "hyperedge":
                self.source.refuse(None, "a hyperedge", "only edges between two nodes can be coloured")
            case "graph":
                self.graphs += 1
                if self.graphs > 1:
                    self.source.refuse(None, "more than one graph", "write each graph into a file of its own")
            case _:
                pass

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        self.source.refuse(None, f"a document type ({name})", "remove the <!DOCTYPE ...> declaration")

    def close(self) -> None:
        if self.graphs == 0:
            self.source.refuse(None, "no graph element", "give a GraphML file")
