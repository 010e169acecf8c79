"""FFCV: its own file format, written once into a temporary folder with JPEG images; uint8 out.

It decodes the whole image and resizes by area, which is not to be chosen.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.pipelines.jpeg_records import AREA_RANGE, ASPECT_RATIO_RANGE, JpegRecords
from bench.pipelines.variants import Task

JPEG_QUALITY = 90
"""FFCV encodes the images itself; this is its default."""

EPOCH_IMAGES = 100_000
"""The least length of an epoch."""


def open_batches(task: Task) -> Iterator[int]:
    """Yields the number of images of each batch, for ever."""
    from ffcv.fields import IntField, RGBImageField
    from ffcv.fields.decoders import IntDecoder, RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import RandomHorizontalFlip
    from ffcv.writer import DatasetWriter

    images = _Images(task)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "images.beton")
        fields = {"image": RGBImageField(write_mode="jpg", jpeg_quality=JPEG_QUALITY), "label": IntField()}
        DatasetWriter(path, fields, num_workers=task.cores).from_indexed_dataset(images)
        side = (task.image_size, task.image_size)
        crop = RandomResizedCropRGBImageDecoder(side, scale=AREA_RANGE, ratio=ASPECT_RATIO_RANGE)
        loader = Loader(
            path,
            indices=endless_enough(len(images)),
            batch_size=task.batch_size,
            num_workers=task.cores,
            order=OrderOption.RANDOM,
            os_cache=True,
            drop_last=True,
            pipelines={"image": [crop, RandomHorizontalFlip()], "label": [IntDecoder()]},
        )
        while True:
            for images, _ in loader:
                yield len(images)


def endless_enough(images: int) -> NDArray[np.int64]:
    """Returns the indices of all images so many times over that an epoch is long.

    FFCV's epochs end with idle threads: in a small set it would be measured for that.
    """
    return np.tile(np.arange(images), -(-EPOCH_IMAGES // images))


class _Images:
    """The images as FFCV's writer takes them."""

    def __init__(self, task: Task) -> None:
        self._records = JpegRecords(task)

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        from PIL import Image

        encoded, label = self._records[index]
        return Image.open(io.BytesIO(encoded)).convert("RGB"), label
