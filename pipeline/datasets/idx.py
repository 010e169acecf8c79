"""Reads the IDX files of MNIST and Fashion-MNIST, gzipped or not.

Format (the description on the MNIST page): two zero bytes, a type code (0x08: unsigned bytes), the number of
dimensions, each dimension as a big-endian 32-bit integer, then the values in row-major order.
"""

from __future__ import annotations

import gzip
import io
import struct
import zlib
from functools import partial
from typing import Any

import numpy as np
from PIL import Image

from echoing.errors import DataError, OptionError
from pipeline import filesystem
from pipeline.datasets.image_bytes import JpegImage, encode_rgb
from pipeline.datasets.source_listing import Candidate, SourceListing

PREFIXES = {"train": "train", "validation": "t10k", "test": "t10k"}
"""Which files a split is read from."""
GREY_TO_RGB = "grey pixels to RGB JPEG"

_IMAGE_DIMENSIONS, _LABEL_DIMENSIONS = 3, 1


def scan_idx(src: str, split: str) -> SourceListing:
    """Reads the images and labels of a split.

    Each image becomes an RGB JPEG. JPEG has no lossless mode that TensorFlow reads, so values change
    slightly (by about 1 of 255 at quality 95). Value d of the label file is class index d.

    Args:
        src: a folder with `train-images-idx3-ubyte[.gz]` and so on, local or remote.
        split: `train`, or `validation` or `test` for the `t10k` files.

    Raises:
        OptionError: another split.
        DataError: a file is missing, truncated, of another kind, or the two do not fit together.
    """
    if split not in PREFIXES:
        raise OptionError("split", split, f"one of {', '.join(PREFIXES)} for IDX files")
    if not filesystem.is_folder(src):
        raise DataError(f"{src} is no folder. Name the folder that holds the four IDX files.")
    images_path = _find(src, PREFIXES[split], "images", _IMAGE_DIMENSIONS)
    labels_path = _find(src, PREFIXES[split], "labels", _LABEL_DIMENSIONS)
    images = read_idx(images_path, _IMAGE_DIMENSIONS)
    labels = read_idx(labels_path, _LABEL_DIMENSIONS)
    if len(images) != len(labels):
        raise DataError(
            f"{images_path} holds {len(images)} images, but {labels_path} {len(labels)} labels. "
            "They are not of one set, or one download ended early."
        )
    if images.size == 0:
        raise DataError(f"{images_path} holds no images (dimensions {images.shape}).")
    name = filesystem.base_name(images_path)
    # Ten classes, as in both sets, even where a cut-down file lacks some; more if the labels say so.
    classes = max(10, int(labels.max()) + 1)
    return SourceListing(
        class_names=[str(number) for number in range(classes)],
        candidates=[
            Candidate(f"{name}#{index}", int(label), partial(_load, pixels))
            for index, (pixels, label) in enumerate(zip(images, labels, strict=True))
        ],
    )


def read_idx(path: str, dimensions: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Reads one IDX file of unsigned bytes.

    Args:
        path: the file; gzip is recognised by its content.
        dimensions: number of dimensions that it must have.

    Returns:
        uint8 array of the dimensions in the header.

    Raises:
        DataError: another type or number of dimensions, or more or fewer bytes than the header says.
    """
    content = filesystem.read_bytes(path)
    if content[:2] != b"\x1f\x8b":
        return _parse(io.BytesIO(content), path, dimensions)
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as unzipped:
            return _parse(unzipped, path, dimensions)
    except (EOFError, zlib.error, OSError) as error:
        raise DataError(f"{path} is a damaged gzip file: {error}. Fetch it again.") from error


def _parse(
    file: io.BytesIO | gzip.GzipFile, path: str, dimensions: int
) -> np.ndarray[Any, np.dtype[np.uint8]]:
    header_bytes = 4 + 4 * dimensions
    header = file.read(header_bytes)
    expected = bytes((0, 0, 8, dimensions))
    if header[:4] != expected:
        raise DataError(
            f"{path} begins with {header[:4].hex() or 'nothing'}, but an IDX file of unsigned bytes with "
            f"{dimensions} dimension{'s' * (dimensions > 1)} begins with {expected.hex()}. "
            "It is another file, or images and labels were swapped."
        )
    if len(header) < header_bytes:
        raise DataError(f"{path} ends inside its header, after {len(header)} bytes. Fetch it again.")
    shape = struct.unpack(f">{dimensions}I", header[4:])
    size = 1
    for length in shape:
        size *= length
    # One byte more than it should hold; never as much as a damaged file may unpack to.
    content = _read_up_to(file, size + 1)
    if len(content) != size:
        found = "more" if len(content) > size else f"only {len(content):,}"
        raise DataError(
            f"{path} should hold {size:,} bytes after its header ({' x '.join(map(str, shape))}), but holds "
            f"{found}. Fetch it again."
        )
    return np.frombuffer(content, np.uint8).reshape(shape)


def _read_up_to(file: io.BytesIO | gzip.GzipFile, size: int) -> bytes:
    """Reads in pieces: asking at once for what a damaged header claims may not fit into memory."""
    pieces, left = [], size
    while left > 0:
        piece = file.read(min(left, 1 << 24))
        if not piece:
            break
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _find(src: str, prefix: str, kind: str, dimensions: int) -> str:
    # "train-images.idx3-ubyte" is how some archives spell it.
    names = [f"{prefix}-{kind}{dot}idx{dimensions}-ubyte{suffix}" for dot in "-." for suffix in ("", ".gz")]
    there = filesystem.list_folder(src)
    matches = [name for name in names if name in there]
    if not matches:
        shown = ", ".join(there[:8]) + (", ..." if len(there) > 8 else "")
        raise DataError(f"{src} holds no {names[0]}[.gz]; it holds: {shown or 'nothing'}.")
    if len(matches) > 1:
        raise DataError(f"{src} holds both {matches[0]} and {matches[1]}. Remove one of them.")
    return filesystem.join(src, matches[0])


def _load(pixels: np.ndarray[Any, np.dtype[np.uint8]], quality: int) -> JpegImage:
    rgb = Image.fromarray(pixels).convert("RGB")
    return JpegImage(encode_rgb(rgb, quality), rgb.height, rgb.width, (GREY_TO_RGB,))
