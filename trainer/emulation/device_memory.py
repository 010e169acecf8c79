"""The memory of an emulated device, and the batches that lie in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from echoing.errors import DataError
from trainer.batch_source import Batch
from trainer.device_echo import DEVICE_USES, DeviceEcho, check_uses

COPIED = ("image", "label")
"""The features that go to the device. The others are tags, or `device_uses`."""


class DeviceMemory:
    """Room for one batch on the device; grows to the largest batch that it held."""

    def __init__(self) -> None:
        self._bytes = {name: np.empty(0, np.uint8) for name in COPIED}

    def copy(self, batch: Batch) -> None:
        """Copies the features that a device needs."""
        for name, target in self._bytes.items():
            # As bytes, because numpy holds the interpreter's lock while it copies bfloat16.
            source = np.ascontiguousarray(batch[name]).reshape(-1).view(np.uint8)
            if target.size < source.size:
                target = self._bytes[name] = np.empty(source.size, np.uint8)
            np.copyto(target[: source.size], source)


@dataclass(frozen=True)
class Contents:
    """What the host knows of a batch.

    Attributes:
        examples: its examples.
        uses: on how many steps the device uses it in any case.
        max_uses: on how many at most, while the next one has not arrived.
        tags: copies of the features that stay on the host.
    """

    examples: int
    uses: int
    max_uses: int
    tags: Mapping[str, np.ndarray[Any, Any]]

    @classmethod
    def of(cls, batch: Batch, echo: DeviceEcho) -> Contents:
        """Reads them from the batch.

        Raises:
            DataError: image and label are no batch, or the uses are out of range.
        """
        uses = check_uses(batch[DEVICE_USES]) if DEVICE_USES in batch else 1
        tags = {name: np.array(value) for name, value in batch.items() if name not in (*COPIED, DEVICE_USES)}
        return cls(_count_examples(batch), uses, echo.max_uses(uses), tags)


@dataclass(frozen=True)
class Arrival:
    """A batch that lies in the device's memory.

    Attributes:
        memory: where it lies.
        seconds: since when, on the device's clock.
        transfer_seconds: how long the copy took.
        contents: what the host knows of it.
    """

    memory: DeviceMemory
    seconds: float
    transfer_seconds: float
    contents: Contents


def _count_examples(batch: Batch) -> int:
    images, labels = batch["image"], batch["label"]
    if images.ndim == 0 or labels.ndim == 0 or len(images) != len(labels):
        raise DataError(
            f"A batch has images of shape {images.shape} and labels of shape {labels.shape}, but both must "
            "begin with the same batch dimension. Put a batch stage at the end of the pipeline."
        )
    return len(images)
