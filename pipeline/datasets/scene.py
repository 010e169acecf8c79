"""Renders one generated example: a photo-like JPEG, its label and its boxes, from (seed, split, index) alone.

Free of TensorFlow: worker processes import it, and nothing but NumPy and Pillow.
"""

from __future__ import annotations

import io
import math
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from pipeline.datasets.shapes import HUES, Mask, Signature, draw_shape, signature
from pipeline.datasets.textures import EXPONENTS, Field, pink_field

_CONTRAST = (40.0, 64.0)
"""Range of the standard deviation of the luminance, of 255. With the exponents of `textures` and quality 92
the mean record at 500 x 375 is about 110 KB, ImageNet's (measured here over 256 images)."""
_CHROMA_CONTRAST, _CHROMA_EXPONENT = 9.0, 1.3
_PORTRAIT_SHARE = 0.25
_SCALE_SPREAD, _ASPECT_SPREAD = 0.18, 0.07
"""Spread (standard deviation of the logarithm) of size and aspect. Chosen here so that sizes look like those
of a photograph collection: most of one form, a quarter upright, few alike. Not measured from ImageNet."""
_KEY_EXAMPLE, _KEY_LABELS = 1, 2
"""Separate the random streams that start from one (seed, split)."""


@dataclass(frozen=True)
class SceneSpec:
    """What a generated set has in common; picklable, so that workers can have it.

    Attributes:
        seed: seed of the whole set.
        split: name of the split; two splits of one seed have different images.
        classes: number of classes.
        height: typical height of a landscape image, pixels.
        width: typical width of a landscape image, pixels.
        fixed_size: whether every image has exactly this size.
        quality: JPEG quality, 1 to 100.
    """

    seed: int
    split: str
    classes: int
    height: int
    width: int
    fixed_size: bool
    quality: int


class RenderedExample(NamedTuple):
    """One rendered example.

    Attributes:
        encoded: RGB JPEG bytes.
        class_index: from 0.
        height: pixels.
        width: pixels.
        boxes: (ymin, xmin, ymax, xmax) of each object, fractions of height and width.
    """

    encoded: bytes
    class_index: int
    height: int
    width: int
    boxes: tuple[tuple[float, float, float, float], ...]


def render_example(spec: SceneSpec, index: int) -> RenderedExample:
    """Renders example `index` of a split.

    The result depends on the specification and the index only, not on which worker renders it or what was
    rendered before. Bytes may differ between versions of NumPy or libjpeg.
    """
    generator = _generator(spec, _KEY_EXAMPLE, index)
    class_index = example_class(spec, index)
    height, width = _image_size(generator, spec)
    exponent = EXPONENTS[generator.integers(len(EXPONENTS))]
    contrast = generator.uniform(*_CONTRAST)
    texture = pink_field(generator, height, width, exponent)
    # JPEG stores the chroma at half the resolution, so drawing it finer would be thrown away.
    half = (height + 1) // 2, (width + 1) // 2
    chroma = [pink_field(generator, *half, _CHROMA_EXPONENT) * np.float32(_CHROMA_CONTRAST) for _ in range(2)]
    planes = [texture * np.float32(contrast) + np.float32(generator.uniform(105, 150))]
    for field in chroma:
        full = field.repeat(2, axis=0).repeat(2, axis=1)[:height, :width]
        planes.append(full + np.float32(generator.uniform(113, 143)))
    boxes = _draw_objects(generator, spec, signature(class_index), planes, texture)
    return RenderedExample(_encode(planes, spec.quality), class_index, height, width, boxes)


def example_class(spec: SceneSpec, index: int) -> int:
    """Returns the class of example `index`, from 0.

    Every block of `classes` examples holds each class once, in a random order.
    """
    block, position = divmod(index, spec.classes)
    return int(_class_order(spec.seed, spec.split, spec.classes, block)[position])


@lru_cache(maxsize=8)
def _class_order(seed: int, split: str, classes: int, block: int) -> Any:
    return _stream(seed, split, _KEY_LABELS, block).permutation(classes)


def _generator(spec: SceneSpec, key: int, index: int) -> np.random.Generator:
    return _stream(spec.seed, spec.split, key, index)


def _stream(seed: int, split: str, key: int, index: int) -> np.random.Generator:
    entropy = (seed, zlib.crc32(split.encode()), key, index)
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(entropy)))


def _image_size(generator: np.random.Generator, spec: SceneSpec) -> tuple[int, int]:
    """Draws (height, width); the mean of height * width stays that of the specification."""
    scale, aspect = generator.standard_normal(2)
    portrait = generator.random() < _PORTRAIT_SHARE
    if spec.fixed_size:
        return spec.height, spec.width
    # A log-normal factor s has E[s ** 2] = exp(2 spread ** 2): divide by its root to keep the mean area.
    size = math.exp(_SCALE_SPREAD * float(np.clip(scale, -2.5, 2.5)) - _SCALE_SPREAD**2)
    form = math.exp(_ASPECT_SPREAD * float(np.clip(aspect, -2.5, 2.5)))
    height, width = max(8, round(spec.height * size * form)), max(8, round(spec.width * size / form))
    return (width, height) if portrait else (height, width)


def _draw_objects(
    generator: np.random.Generator, spec: SceneSpec, what: Signature, planes: list[Field], texture: Field
) -> tuple[tuple[float, float, float, float], ...]:
    """Draws the objects of a class into the planes; one in each of `count` cells along the longer side."""
    height, width = texture.shape
    boxes = []
    for cell in range(what.count):
        top, left, rows, columns = _cell(height, width, what.count, cell)
        shorter = min(rows, columns)
        size = min(shorter, max(6, round(shorter * generator.uniform(0.55, 0.9))))
        row = top + int(generator.integers(rows - size + 1))
        column = left + int(generator.integers(columns - size + 1))
        angle, phase = generator.uniform(-0.25, 0.25), generator.uniform(0, 2 * math.pi)
        coverage, second = draw_shape(what.shape, what.fill, size, angle, phase)
        window = slice(row, row + size), slice(column, column + size)
        shading = texture[window] * np.float32(14.0)
        colours = _colours(generator, spec, what)
        for plane, first_colour, second_colour in zip(planes, *colours, strict=True):
            paint = np.float32(first_colour) + second * np.float32(second_colour - first_colour)
            if plane is planes[0]:
                paint = paint + shading
            plane[window] += coverage * (paint - plane[window])
        boxes.append(_box(coverage, row, column, height, width))
    return tuple(boxes)


def _cell(height: int, width: int, count: int, cell: int) -> tuple[int, int, int, int]:
    if width >= height:
        left, right = width * cell // count, width * (cell + 1) // count
        return 0, left, height, right - left
    top, bottom = height * cell // count, height * (cell + 1) // count
    return top, 0, bottom - top, width


def _colours(
    generator: np.random.Generator, spec: SceneSpec, what: Signature
) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Draws the two (Y, Cb, Cr) colours of an object: one light, one dark, in either order.

    Nothing in them depends on the class up to 120 classes, so that the mean colour of an image tells nothing.
    """
    light, dark = generator.uniform(185, 235), generator.uniform(20, 70)
    hue, strength = generator.uniform(0, 2 * math.pi), generator.uniform(15, 55)
    if spec.classes > MAX_CLASSES_WITHOUT_HUE:
        hue = (what.hue + generator.uniform(-0.25, 0.25)) * 2 * math.pi / HUES
        strength = generator.uniform(35, 55)
    blue, red = 128 + strength * math.cos(hue), 128 + strength * math.sin(hue)
    first, second = (light, dark) if generator.random() < 0.5 else (dark, light)
    return (first, blue, red), (second, blue, red)


MAX_CLASSES_WITHOUT_HUE = 120
"""Up to here shape, fill and count tell the classes apart; see `shapes.signature`."""


def _box(coverage: Mask, row: int, column: int, height: int, width: int) -> tuple[float, float, float, float]:
    rows, columns = np.flatnonzero(coverage.max(axis=1) > 0.5), np.flatnonzero(coverage.max(axis=0) > 0.5)
    return (
        float(row + rows[0]) / height,
        float(column + columns[0]) / width,
        float(row + rows[-1] + 1) / height,
        float(column + columns[-1] + 1) / width,
    )


def _encode(planes: list[Field], quality: int) -> bytes:
    bands = [Image.fromarray(np.clip(np.rint(plane), 0, 255).astype(np.uint8)) for plane in planes]
    buffer = io.BytesIO()
    Image.merge("YCbCr", bands).save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()
