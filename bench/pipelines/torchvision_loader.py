"""The usual PyTorch input: a DataLoader of processes, Pillow, torchvision's transforms; uint8 out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.pipelines.jpeg_records import AREA_RANGE, ASPECT_RATIO_RANGE, JpegRecords
from bench.pipelines.variants import Task


def open_batches(task: Task) -> Iterator[int]:
    """Yields the number of images of each batch, for ever."""
    import torch

    torch.set_num_threads(1)
    loader = torch.utils.data.DataLoader(
        _Images(task),
        batch_size=task.batch_size,
        shuffle=True,
        drop_last=True,
        num_workers=task.cores,
        persistent_workers=True,
        prefetch_factor=2,
    )
    while True:
        for images, _ in loader:
            yield int(images.shape[0])


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
                ),
                v2.RandomHorizontalFlip(),
                v2.PILToTensor(),
            ]
        )

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        import io

        from PIL import Image

        encoded, label = self._records[index]
        with Image.open(io.BytesIO(encoded)) as image:
            return self._transform(image.convert("RGB")), label
