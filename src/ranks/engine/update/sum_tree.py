"""The one order in which `--exact` adds up shards, whoever carries them.

The S shards are the leaves of a binary tree: node (level, index) covers shards [index * 2**level,
(index+1) * 2**level) as far as they exist. A node is the sum of its two children, left plus right;
where the right child covers no shard (S is no power of two) the node is its left child. A rank adds
up what it can: its maximal aligned nodes. The rest of the tree is finished by the owner of each
slice of the gradient (reduce.py). Floating-point sums then never depend on the deal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from torch import Tensor

T = TypeVar("T")


@dataclass(frozen=True, order=True)
class Node:
    level: int
    index: int

    @property
    def parent(self) -> Node:
        return Node(self.level + 1, self.index // 2)


def aligned_nodes(shards: range) -> list[Node]:
    """The maximal nodes whose leaves all lie in a contiguous run of shards, from left to right."""
    nodes: list[Node] = []
    for shard in shards:
        node = Node(0, shard)
        while node.index % 2 and nodes and nodes[-1] == Node(node.level, node.index - 1):
            nodes.pop()
            node = node.parent
        nodes.append(node)
    return nodes


def finish(values: Mapping[Node, T], num_shards: int, add: Callable[[T, T], T]) -> T:
    """The root, from nodes that cover all shards once."""

    def value(node: Node) -> T:
        if node in values:
            return values[node]
        left = value(Node(node.level - 1, 2 * node.index))
        right = Node(node.level - 1, 2 * node.index + 1)
        return left if right.index << right.level >= num_shards else add(left, value(right))

    return value(Node((num_shards - 1).bit_length(), 0))


class PartialSums:
    """A rank's maximal aligned sums, built shard by shard from one gradient buffer that is used
    again and again."""

    def __init__(self) -> None:
        self.nodes: list[tuple[Node, Tensor]] = []
        self._spare: list[Tensor] = []

    def clear(self) -> None:
        self._spare += [buffer for _, buffer in self.nodes]
        self.nodes = []

    def push(self, shard: int, leaf: Tensor) -> None:
        """Add the next shard's leaf; `leaf` is only read."""
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
