"""What tells the classes of the generated set apart: a shape, how it is filled, how many there are.

Free of TensorFlow: worker processes import it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

Mask = np.ndarray[Any, np.dtype[np.float32]]

SHAPES = ("disc", "square", "triangle", "ring", "cross", "diamond", "star", "half-disc")
FILLS = ("plain", "barred", "striped", "checked", "dotted")
COUNTS = ("one", "two", "three")
HUES = 9
MAX_CLASSES = len(SHAPES) * len(FILLS) * len(COUNTS) * HUES
"""How many classes can be told apart: 1,080. The hue carries information only beyond 120 classes."""

_STRIPES = 4.0
"""Periods of a fill pattern across an object; at 64 x 64 pixels an object of 20 pixels shows them still."""


@dataclass(frozen=True)
class Signature:
    """What the objects of one class look like.

    Attributes:
        shape: one of `SHAPES`.
        fill: one of `FILLS`.
        count: number of objects, 1 to 3.
        hue: 0 to `HUES` - 1; a class with a higher number shares all else with one of a lower hue.
    """

    shape: str
    fill: str
    count: int
    hue: int

    @property
    def name(self) -> str:
        """The name of the class, unique among all signatures."""
        words = f"{COUNTS[self.count - 1]} {self.fill} {self.shape}"
        return words if self.hue == 0 else f"{words} hue {self.hue}"


def signature(class_index: int) -> Signature:
    """Returns the signature of class `class_index`, 0 to `MAX_CLASSES` - 1.

    Shape and fill run side by side (their numbers, 8 and 5, have no common factor), so that neighbouring
    classes differ in both and a small set of classes is learnable by a small network.
    """
    kinds = len(SHAPES) * len(FILLS)
    return Signature(
        shape=SHAPES[class_index % len(SHAPES)],
        fill=FILLS[class_index % len(FILLS)],
        count=class_index // kinds % len(COUNTS) + 1,
        hue=class_index // (kinds * len(COUNTS)),
    )


def draw_shape(shape: str, fill: str, size: int, angle: float, phase: float) -> tuple[Mask, Mask]:
    """Draws one object into a square window.

    Args:
        shape: one of `SHAPES`.
        fill: one of `FILLS`.
        size: side of the window, pixels.
        angle: rotation, radians.
        phase: shift of the fill pattern, radians.

    Returns:
        Two float32 `[size, size]` arrays from 0 to 1: how far a pixel is covered by the object (soft over
        one pixel at the edge), and how far it has the object's second colour.
    """
    axis = (np.arange(size, dtype=np.float32) + np.float32(0.5)) * np.float32(2.0 / size) - np.float32(1.0)
    cosine, sine = np.float32(math.cos(angle)), np.float32(math.sin(angle))
    x = cosine * axis[None, :] + sine * axis[:, None]
    y = cosine * axis[:, None] - sine * axis[None, :]
    inside = _inside(shape, x, y)  # > 0 inside, in units of half a window
    coverage = np.clip(inside * np.float32(size / 2) + np.float32(0.5), 0, 1).astype(np.float32)
    return coverage, _second_colour(fill, x, y, phase)


def _inside(shape: str, x: Mask, y: Mask) -> Any:
    radius = np.hypot(x, y)
    if shape == "disc":
        return 0.9 - radius
    if shape == "square":
        return 0.7 - np.maximum(np.abs(x), np.abs(y))
    if shape == "triangle":
        return np.minimum(0.6 - y, (y + 0.9) * 0.45 - np.abs(x) * 0.9)
    if shape == "ring":
        return 0.22 - np.abs(radius - 0.68)
    if shape == "cross":
        wide, narrow = np.maximum(np.abs(x), np.abs(y)), np.minimum(np.abs(x), np.abs(y))
        return np.minimum(0.85 - wide, 0.27 - narrow)
    if shape == "diamond":
        return (0.9 - np.abs(x) - np.abs(y)) * 0.7
    if shape == "star":
        return (0.62 + 0.28 * np.cos(5 * np.arctan2(x, -y)) - radius) * 0.6
    return np.minimum(0.9 - radius, y + 0.15)  # half-disc


def _second_colour(fill: str, x: Mask, y: Mask, phase: float) -> Mask:
    if fill == "plain":
        return np.zeros_like(x)
    turn = np.float32(math.pi * _STRIPES)
    across, down = np.sin(turn * x + np.float32(phase)), np.sin(turn * y + np.float32(phase))
    wave = {
        "barred": down,
        "striped": across,
        "checked": across * down * 2,
        "dotted": across + down - np.float32(0.9),
    }[fill]
    return np.clip(np.float32(0.5) + wave * 2, 0, 1).astype(np.float32)
