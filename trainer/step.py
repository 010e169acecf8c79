"""What every trainer gives back: one record a step, and the words to describe its device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np


@dataclass(frozen=True)
class StepRecord:
    """One finished training step, timed on the device's side.

    All times are seconds on one monotonic clock (`time.monotonic`), so that differences are meaningful within
    a run. `wait_seconds + (end_seconds - start_seconds)` over consecutive steps adds up to the span of the
    run.

    Attributes:
        index: number of the step, from 0.
        wait_seconds: time that the device was idle before this step for lack of data: since the end of the
            step before, or since the trainer was started for step 0.
        start_seconds: when the device began the step.
        end_seconds: when the device finished it.
        transfer_seconds: time spent on copying the batch to the device; part of the wait where nothing
            hid it; 0 where the device held the batch already.
        examples: number of examples in the batch.
        tags: the features of the batch beside `image`, `label` and `device_uses`, as host arrays; the
            trainer does not look at them. Arrays of one value an example have shape `[examples]`.
        loss: the training loss, or None where the device computes none.
        device_repeat: 0 for a batch that has just come, 1 and up for a further step on the same batch, which
            the device held.
    """

    index: int
    wait_seconds: float
    start_seconds: float
    end_seconds: float
    transfer_seconds: float
    examples: int
    tags: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    loss: float | None = None
    device_repeat: int = 0

    @property
    def busy_seconds(self) -> float:
        """Time that the device worked on the step."""
        return self.end_seconds - self.start_seconds


@dataclass(frozen=True)
class DeviceDescription:
    """What the steps ran on, as it is shown in every output.

    Attributes:
        name: such as `tpu-v2-8` or `CPU`.
        kind: `cpu`, `gpu`, `tpu`, or `emulated`.
        count: number of devices.
        model: the model trained, such as `Inception v3`.
        step_seconds: the step time that an emulated device holds, for the batch size in use; None if real.
        provenance: where the step time comes from; empty if real.
    """

    name: str
    kind: str
    count: int = 1
    model: str = ""
    step_seconds: float | None = None
    provenance: str = ""

    @property
    def emulated(self) -> bool:
        """Whether no real accelerator did the work."""
        return self.kind == "emulated"


class Trainer(Protocol):
    """Eats a dataset and gives a record a step; it never looks behind the dataset."""

    @property
    def device(self) -> DeviceDescription:
        """What the steps run on."""
        ...

    def steps(self, dataset: Any) -> Iterator[StepRecord]:
        """Trains on `dataset` until it ends or the iterator is closed.

        Args:
            dataset: a `tf.data.Dataset` of batches: dictionaries with `image` `[batch, height, width, 3]`
                (float32, bfloat16 or uint8), `label` `[batch]` int32, and any other features (tags). One of
                them, `device_uses` int64 `[]`, is no tag: on how many consecutive steps, at least 1, the
                device uses the batch.

        Yields:
            The record of each step, in order, once its end is known. An error of the pipeline is raised from
            here unchanged.
        """
        ...
