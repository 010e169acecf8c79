"""The residual networks as a table (He et al. 2015, arXiv:1512.03385, table 1); no TensorFlow."""

from __future__ import annotations

from typing import NamedTuple

MINIMUM_IMAGE_SIZE = 17
"""The network halves the image five times, rounding up; smaller images leave the last of them one pixel."""
STAGE_DEPTHS = (64, 128, 256, 512)
"""Channels inside the blocks of each stage at width multiplier 1; each but the first halves the grid."""
BOTTLENECK_EXPANSION = 4
"""Channels that a bottleneck block gives for each channel inside it."""


class ResNetArchitecture(NamedTuple):
    """One network of the family.

    Attributes:
        name: of the network.
        blocks: number of blocks in each stage.
        bottleneck: whether a block is 1 x 1, 3 x 3, 1 x 1, and not two 3 x 3.
    """

    name: str
    blocks: tuple[int, int, int, int]
    bottleneck: bool


RESNET18 = ResNetArchitecture("ResNet18", (2, 2, 2, 2), bottleneck=False)
RESNET50 = ResNetArchitecture("ResNet50", (3, 4, 6, 3), bottleneck=True)
