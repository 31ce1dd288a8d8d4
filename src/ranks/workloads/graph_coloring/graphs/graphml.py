"""Reading GraphML files.

Vertices keep the order of their `node` elements; directions and attributes are ignored.

Format: Brandes et al. 2002, "GraphML progress report". Entities are never expanded: a document type
is rejected.
"""

from __future__ import annotations

from xml.etree import ElementTree

from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.graphs.graph_text import GraphText


def parse_graphml(text: GraphText) -> Graph:
    """The graph of a GraphML file. Raises UserError."""
    elements = _Elements(text)
    parser = ElementTree.XMLParser(target=elements)
    try:
        parser.feed(text.data)
        parser.close()
    except ElementTree.ParseError as error:
        text.fail(error.position[0], "not well-formed XML", "write the file again, or download it again")
    index = {name: number for number, name in enumerate(elements.nodes)}
    if len(index) < len(elements.nodes):
        text.fail(None, "two nodes with one id", "give each node a different id")
    pairs: list[tuple[int, int]] = []
    num_loops = 0
    for u, v in elements.edges:
        for name in (u, v):
            if name not in index:
                text.fail(
                    None,
                    f"an edge of node '{name[:40]}', which is not in the graph",
                    "add the node, or remove the edge",
                )
        if u == v:
            text.check_self_loop(None, u)
            num_loops += 1
        else:
            pairs.append((index[u], index[v]))
    text.check_size(None, len(index), len(pairs))
    return text.graph(len(index), pairs, num_loops)


class _Elements:
    """Parser target: collects the ids of nodes and the two ends of each edge."""

    def __init__(self, text: GraphText) -> None:
        self.text = text
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
                self.text.fail(None, "a hyperedge", "only edges between two nodes can be coloured")
            case "graph":
                self.graphs += 1
                if self.graphs > 1:
                    self.text.fail(None, "more than one graph", "write each graph into a separate file")
            case _:
                pass

    def doctype(self, name: str, public: str | None, system: str | None) -> None:
        self.text.fail(None, f"a document type ({name})", "remove the <!DOCTYPE ...> declaration")

    def close(self) -> None:
        if self.graphs == 0:
            self.text.fail(None, "no graph element", "give a GraphML file")
