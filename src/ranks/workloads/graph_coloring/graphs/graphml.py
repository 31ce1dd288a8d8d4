"""Reading GraphML files.

Vertices keep the order of their `node` elements; directions and attributes are ignored.

Format: Brandes et al. 2002, "GraphML progress report". Entities are never expanded: a document type
is rejected.
"""

from __future__ import annotations

from array import array
from typing import cast
from xml.etree import ElementTree

from ranks.bounded_file import BLOCK_BYTES, BoundedContent
from ranks.workloads.graph_coloring.graphs.graph import Graph
from ranks.workloads.graph_coloring.graphs.graph_text import GraphText


def parse_graphml(text: GraphText) -> Graph:
    """The graph of a GraphML file. Raises UserError."""
    elements = _Elements(text)
    cast(BoundedContent, text.content.raw).has_lines = False
    parser = ElementTree.XMLParser(target=elements)
    try:
        while block := text.content.read(BLOCK_BYTES):
            parser.feed(block)
            text.check_size(None, max(1, len(elements.names)), len(elements.ends) // 2)
        parser.close()
    except ElementTree.ParseError as error:
        text.fail(error.position[0], "not well-formed XML", "write the file again, or download it again")
    except (LookupError, ValueError) as error:
        text.fail(1, f"an encoding that cannot be read ({error})", "save it as UTF-8")
    missing = next((name for name in elements.names if name not in elements.place), None)
    if missing is not None:
        found = f"an edge of node '{missing[:40]}', which is not in the graph"
        text.fail(None, found, "add the node, or remove the edge")
    names = list(elements.names)
    place = [elements.place[name] for name in names]
    edges = text.edges()
    for u, v in zip(elements.ends[::2], elements.ends[1::2], strict=True):
        if u == v:
            text.check_self_loop(None, names[u])
        edges.add(None, place[u], place[v])
    text.check_size(None, len(place), len(edges))
    return text.graph(len(place), edges, first=0)


class _Elements:
    """Parser target: the places of the nodes in the file, and both ends of each edge."""

    def __init__(self, text: GraphText) -> None:
        self.text = text
        self.place: dict[str, int] = {}
        """The id of a node -> how many nodes come before it."""
        self.names: dict[str, int] = {}
        """The id of a node or of the end of an edge -> its number, in order of first use."""
        self.ends = array("q")
        self.graphs = 0

    def number(self, name: str) -> int:
        """The number of an id."""
        return self.names.setdefault(name, len(self.names))

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        match tag.rpartition("}")[2]:
            case "node":
                name = attributes.get("id", "")
                if name in self.place:
                    self.text.fail(None, "two nodes with one id", "give each node a different id")
                self.place[name] = len(self.place)
                self.number(name)
            case "edge":
                self.ends.append(self.number(attributes.get("source", "")))
                self.ends.append(self.number(attributes.get("target", "")))
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
