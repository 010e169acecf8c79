"""The layers of Inception v3 as a table (Szegedy et al. 2015, arXiv:1512.00567); no TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

MINIMUM_IMAGE_SIZE = 75
"""Smaller images leave nothing for the last reduction (Mixed_7a) to work on, pixels."""


class Conv(NamedTuple):
    """A convolution of the architecture; `depth` is at width multiplier 1."""

    depth: int
    height: int = 1
    width: int = 1
    strides: int = 1
    padding: str = "SAME"


@dataclass(frozen=True)
class Pool:
    """A pooling over 3 x 3 pixels: the maximum with stride 2, or the mean with stride 1."""

    kind: str


class Fork(NamedTuple):
    """Convolutions that read the same input and whose outputs are concatenated."""

    ways: tuple[Conv, ...]


Node = Conv | Pool | Fork
MEAN, MAX = Pool("mean"), Pool("max")


def _mixed_35(pooled: int) -> list[list[Node]]:
    """Modules on the 35 x 35 grid (sizes of grids are those of a 299 x 299 image)."""
    return [
        [Conv(64)],
        [Conv(48), Conv(64, 5, 5)],
        [Conv(64), Conv(96, 3, 3), Conv(96, 3, 3)],
        [MEAN, Conv(pooled)],
    ]


def _mixed_17(depth: int) -> list[list[Node]]:
    """Modules on the 17 x 17 grid, with 7 x 7 convolutions factored into 1 x 7 and 7 x 1."""
    return [
        [Conv(192)],
        [Conv(depth), Conv(depth, 1, 7), Conv(192, 7, 1)],
        [Conv(depth), Conv(depth, 7, 1), Conv(depth, 1, 7), Conv(depth, 7, 1), Conv(192, 1, 7)],
        [MEAN, Conv(192)],
    ]


def _mixed_8() -> list[list[Node]]:
    """Modules on the 8 x 8 grid."""
    fork = Fork((Conv(384, 1, 3), Conv(384, 3, 1)))
    return [[Conv(320)], [Conv(384), fork], [Conv(448), Conv(384, 3, 3), fork], [MEAN, Conv(192)]]


STEM: list[Node] = [
    Conv(32, 3, 3, 2, "VALID"),
    Conv(32, 3, 3, 1, "VALID"),
    Conv(64, 3, 3),
    MAX,
    Conv(80, 1, 1, 1, "VALID"),
    Conv(192, 3, 3, 1, "VALID"),
    MAX,
]
MODULES: dict[str, list[list[Node]]] = {
    "Mixed_5b": _mixed_35(32),
    "Mixed_5c": _mixed_35(64),
    "Mixed_5d": _mixed_35(64),
    "Mixed_6a": [
        [Conv(384, 3, 3, 2, "VALID")],
        [Conv(64), Conv(96, 3, 3), Conv(96, 3, 3, 2, "VALID")],
        [MAX],
    ],
    "Mixed_6b": _mixed_17(128),
    "Mixed_6c": _mixed_17(160),
    "Mixed_6d": _mixed_17(160),
    "Mixed_6e": _mixed_17(192),
    "Mixed_7a": [
        [Conv(192), Conv(320, 3, 3, 2, "VALID")],
        [Conv(192), Conv(192, 1, 7), Conv(192, 7, 1), Conv(192, 3, 3, 2, "VALID")],
        [MAX],
    ],
    "Mixed_7b": _mixed_8(),
    "Mixed_7c": _mixed_8(),
}
"""The modules in order; each is a list of branches whose outputs are concatenated."""
AUXILIARY_MODULE = "Mixed_6e"
"""The module whose output the auxiliary head reads."""


def grid_after(nodes: Sequence[Node], size: int) -> int:
    """Returns the height and width that consecutive nodes leave of a square grid of `size`, pixels."""
    for node in nodes:
        if isinstance(node, Conv) and node.padding == "VALID":
            size = (size - max(node.height, node.width)) // node.strides + 1
        elif node == MAX:
            size = (size - 3) // 2 + 1
    return size
