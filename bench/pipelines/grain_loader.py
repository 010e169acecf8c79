"""Grain with OpenCV: decode, crop, resize and flip in threads; uint8 out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.pipelines.jpeg_records import AREA_RANGE, ASPECT_RATIO_RANGE, JpegRecords
from bench.pipelines.variants import Task
from echoing.errors import DataError

CROP_ATTEMPTS = 10
"""As torchvision's `RandomResizedCrop` makes."""

THREADS_PER_CORE = 2
"""While some wait for the interpreter's lock, others decode."""


def open_batches(task: Task) -> Iterator[int]:
    """Yields the number of images of each batch, for ever."""
    import cv2
    import grain

    # Grain brings the threads; OpenCV's own would only get into their way.
    cv2.setNumThreads(1)
    records = JpegRecords(task)

    def prepare(index: int, generator: np.random.Generator) -> tuple[Any, int]:
        encoded, label = records[index]
        image = cv2.imdecode(np.frombuffer(encoded, np.uint8), cv2.IMREAD_COLOR_RGB)
        if image is None:
            raise DataError(f"OpenCV cannot decode image {index} of {task.data_dir}.")
        top, left, height, width = random_window(image.shape[0], image.shape[1], generator)
        crop = image[top : top + height, left : left + width]
        resized = cv2.resize(crop, (task.image_size, task.image_size), interpolation=cv2.INTER_LINEAR)
        return (cv2.flip(resized, 1) if generator.random() < 0.5 else resized), label

    dataset = grain.MapDataset.range(len(records)).seed(0).shuffle().repeat().random_map(prepare)
    threads = THREADS_PER_CORE * task.cores
    options = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=max(threads, task.batch_size))
    for images, _ in dataset.to_iter_dataset(options).batch(task.batch_size, drop_remainder=True):
        yield len(images)


def random_window(height: int, width: int, generator: np.random.Generator) -> tuple[int, int, int, int]:
    """Returns top, left, height and width of a random crop, the whole image where none fits."""
    for _ in range(CROP_ATTEMPTS):
        area = height * width * generator.uniform(*AREA_RANGE)
        ratio = generator.uniform(*ASPECT_RATIO_RANGE)
        crop_height, crop_width = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
        if 0 < crop_height <= height and 0 < crop_width <= width:
            top = int(generator.integers(height - crop_height + 1))
            left = int(generator.integers(width - crop_width + 1))
            return top, left, crop_height, crop_width
    return 0, 0, height, width
