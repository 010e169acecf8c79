"""PyTorch's DataLoader of processes with torchvision's own decoder and transforms; uint8 out.

The images stay tensors from the decoder on: by way of Pillow, the form of many tutorials, it took 1.7 times
as long on two cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.pipelines.jpeg_records import AREA_RANGE, ASPECT_RATIO_RANGE, JpegRecords
from bench.pipelines.variants import Task


def open_batches(task: Task) -> Iterator[int]:
    """Yields the number of images of each batch, for ever."""
    import torch

    images = _Images(task)
    loader = torch.utils.data.DataLoader(
        images,
        batch_size=task.batch_size,
        sampler=EndlessSampler(len(images)),
        num_workers=task.cores,
        prefetch_factor=2,
    )
    for batch, _ in loader:
        yield int(batch.shape[0])


class EndlessSampler:
    """Indices in random order, one epoch after the other without an end.

    An epoch of the DataLoader ends with idle processes: in a small set it would be measured for that.

    Args:
        length: number of images.
    """

    def __init__(self, length: int) -> None:
        self._length = length

    def __iter__(self) -> Iterator[int]:
        import torch

        while True:
            yield from torch.randperm(self._length).tolist()


class _Images:
    """A map-style dataset: `(uint8 [3, size, size], label)`."""

    def __init__(self, task: Task) -> None:
        from torchvision.transforms import InterpolationMode, v2

        self._records = JpegRecords(task)
        self._transform = v2.Compose(
            [
                v2.RandomResizedCrop(
                    task.image_size,
                    scale=AREA_RANGE,
                    ratio=ASPECT_RATIO_RANGE,
                    interpolation=InterpolationMode.BILINEAR,
                    # As TensorFlow, OpenCV and DALI are used here.
                    antialias=False,
                ),
                v2.RandomHorizontalFlip(),
            ]
        )

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        import torch
        from torchvision.io import ImageReadMode, decode_jpeg

        encoded, label = self._records[index]
        # A copy, because a tensor must be of memory that may be written to.
        data = torch.frombuffer(bytearray(encoded), dtype=torch.uint8)
        return self._transform(decode_jpeg(data, mode=ImageReadMode.RGB)), label
