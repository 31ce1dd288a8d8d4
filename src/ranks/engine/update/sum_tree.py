"""The fixed order in which `--exact` sums the shards, on any assignment of shards to ranks.

The S shards are the leaves of a binary tree. Node (level, index) covers the existing shards of
[index * 2**level, (index+1) * 2**level). A node is the sum of its two children, left plus right;
where the right child covers no shard (S is not a power of two) the node is its left child. A rank
computes its maximal aligned nodes: those whose shards it carries all. The owner of each slice of
the gradient finishes the tree (gradients.py). So floating-point sums do not depend on the
assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from torch import Tensor

T = TypeVar("T")


@dataclass(frozen=True, order=True)
class Node:
    """One node of the tree; level 0 are the shards."""

    level: int
    index: int

    @property
    def parent(self) -> Node:
        return Node(self.level + 1, self.index // 2)


def aligned_nodes(shards: range) -> list[Node]:
    """The maximal nodes whose leaves are all in a contiguous range of shards, from left to
    right."""
    nodes: list[Node] = []
    for shard in shards:
        node = Node(0, shard)
        while node.index % 2 and nodes and nodes[-1] == Node(node.level, node.index - 1):
            nodes.pop()
            node = node.parent
        nodes.append(node)
    return nodes


def finish(values: Mapping[Node, T], num_shards: int, add: Callable[[T, T], T]) -> T:
    """The value of the root, from nodes that together cover each shard once."""

    def value(node: Node) -> T:
        if node in values:
            return values[node]
        left = value(Node(node.level - 1, 2 * node.index))
        right = Node(node.level - 1, 2 * node.index + 1)
        return left if right.index << right.level >= num_shards else add(left, value(right))

    return value(Node((num_shards - 1).bit_length(), 0))


class PartialSums:
    """A rank's maximal aligned nodes, built shard by shard. Buffers of summed nodes are reused."""

    def __init__(self) -> None:
        self.nodes: list[tuple[Node, Tensor]] = []
        self._spare: list[Tensor] = []

    def clear(self) -> None:
        self._spare += [buffer for _, buffer in self.nodes]
        self.nodes = []

    def push(self, shard: int, leaf: Tensor) -> None:
        """Add the next shard's gradient; `leaf` is only read."""
        node, value = Node(0, shard), leaf
        while node.index % 2 and self.nodes and self.nodes[-1][0] == Node(node.level, node.index - 1):
            left = self.nodes.pop()[1]
            left.add_(value)
            if value is not leaf:
                self._spare.append(value)
            node, value = node.parent, left
        if value is leaf:
            value = self._spare.pop() if self._spare else leaf.new_empty(leaf.shape)
            value.copy_(leaf)
        self.nodes.append((node, value))
