"""An accelerator that is not there: takes real batches and holds the device for the step time of a preset."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from echoing.checks import check_integer, check_number
from echoing.errors import DataError, OptionError
from trainer.batch_source import Batch, BatchSource
from trainer.channel import Channel
from trainer.device_timeline import DeviceTimeline
from trainer.presets import Preset, get_preset
from trainer.step import DeviceDescription, StepRecord

RECORDS_AHEAD = 1024
"""Finished steps that may wait for the caller: a slow one does not stop the device, yet memory is bounded."""

WaitUntil = Callable[[float, threading.Event], None]


class EmulatedAccelerator:
    """A trainer whose device does no work, but takes as long as a real one and is fed like one.

    One thread, the infeed, takes batches from the dataset and copies image and label into buffers that stand
    for the device's memory. Another, the device, starts a step when its batch has arrived and the step before
    has ended, and sleeps until the scheduled end (see `DeviceTimeline`), so that the host's cores stay free
    for the input pipeline, as they are with a real accelerator. Up to `queue_depth` batches wait on the
    device while a step runs, as in an infeed queue.

    A batch that is smaller than `batch_size`, such as the last one of a data set, takes proportionally less
    time. On a real device it would take somewhat longer than that.

    Args:
        preset: a preset or its name; None with `step_seconds` for an accelerator of one's own.
        batch_size: examples of a full step.
        step_seconds: time of a step of `batch_size` examples, in seconds; overrides the preset's.
        jitter: standard deviation of the step time, relative to its mean. The factors are drawn from a
            log-normal distribution of mean 1, since step times are positive and have a tail to the right.
        seed: seed of the jitter; each call of `steps` draws the same factors.
        queue_depth: batches that may wait on the device beside the one in work. 2, the depth of a double
            buffer, is our choice.
        clock: a monotonic clock, in seconds; for tests.
        wait_until: sleeps until a time of `clock` or until the event is set; for tests.

    Raises:
        OptionError: a value is not allowed, or neither preset nor step time is given.
    """

    def __init__(
        self,
        preset: Preset | str | None = None,
        *,
        batch_size: int,
        step_seconds: float | None = None,
        jitter: float = 0.0,
        seed: int = 0,
        queue_depth: int = 2,
        clock: Callable[[], float] = time.monotonic,
        wait_until: WaitUntil | None = None,
    ) -> None:
        self._batch_size = check_integer("batch_size", batch_size, minimum=1)
        self._jitter = check_number("jitter", jitter, minimum=0, maximum=1)
        self._seed = check_integer("seed", seed, minimum=0)
        self._queue_depth = check_integer("queue_depth", queue_depth, minimum=1)
        self._clock = clock
        self._wait_until = wait_until or self._sleep_until
        if isinstance(preset, str):
            preset = get_preset(preset)
        if step_seconds is not None:
            seconds = check_number("step_seconds", step_seconds, minimum=0, exclusive_minimum=True)
            provenance = "step time given by the user"
        elif preset is not None:
            seconds = preset.step_seconds_for(self._batch_size)
            provenance = preset.provenance
            if self._batch_size != preset.batch_size:
                provenance += f"; scaled linearly from batch {preset.batch_size} to {self._batch_size}"
        else:
            raise OptionError(
                "step_seconds", None, "given where no preset is", "Name a preset or a step time."
            )
        self._device = DeviceDescription(
            name=preset.name if preset else "custom",
            kind="emulated",
            model=preset.model if preset else "",
            step_seconds=seconds,
            provenance=provenance,
        )
        self._step_seconds = seconds

    @property
    def device(self) -> DeviceDescription:
        """What is emulated, and where its step time comes from."""
        return self._device

    def steps(self, dataset: Any) -> Iterator[StepRecord]:
        """Trains on a dataset, in name only; see `trainer.step.Trainer.steps`.

        The infeed runs ahead of the steps yielded, by at most `queue_depth + 1` batches and the one that it
        holds ready. Closing the iterator ends both threads at once, also while the pipeline is at work.

        Args:
            dataset: a `tf.data.Dataset` of batches, or any iterable of dictionaries of arrays.

        Yields:
            The record of each step, as soon as the device has ended it.

        Raises:
            DataError: the elements are no batches.
        """
        run = _Run(self, dataset)
        threads = [
            threading.Thread(target=work, name=f"pipebench-{name}", daemon=True)
            for name, work in (("infeed", run.feed), ("device", run.work))
        ]
        try:
            for thread in threads:
                thread.start()
            yield from run.records
        finally:
            run.stop()
            for thread in threads:
                if thread.ident is not None:
                    thread.join()

    def _sleep_until(self, deadline_seconds: float, stopped: threading.Event) -> None:
        while (remaining := deadline_seconds - self._clock()) > 0 and not stopped.is_set():
            stopped.wait(remaining)

    def _duration_seconds(self, examples: int, generator: np.random.Generator) -> float:
        seconds = self._step_seconds * examples / self._batch_size
        if self._jitter:
            # A log-normal factor of mean 1 and variance jitter^2.
            variance = math.log1p(self._jitter**2)
            seconds *= generator.lognormal(-variance / 2, math.sqrt(variance))
        return seconds


class _DeviceMemory:
    """Room for one batch on the device; grows to the largest batch that it held."""

    def __init__(self) -> None:
        self._bytes = {name: np.empty(0, np.uint8) for name in ("image", "label")}

    def copy(self, batch: Batch) -> None:
        for name, target in self._bytes.items():
            # As bytes, because numpy holds the interpreter's lock while it copies bfloat16.
            source = np.ascontiguousarray(batch[name]).reshape(-1).view(np.uint8)
            if target.size < source.size:
                target = self._bytes[name] = np.empty(source.size, np.uint8)
            np.copyto(target[: source.size], source)


@dataclass(frozen=True)
class _Arrival:
    """A batch that lies in the device's memory."""

    memory: _DeviceMemory
    seconds: float
    transfer_seconds: float
    examples: int
    tags: Mapping[str, np.ndarray[Any, Any]]


class _Run:
    """The two threads of one call of `steps`, and what connects them."""

    def __init__(self, owner: EmulatedAccelerator, dataset: Any) -> None:
        self._owner = owner
        self._source = BatchSource(dataset)
        buffers = owner._queue_depth + 1
        # The buffer used last is reused first: a run that waits for its host touches one buffer, not all.
        self._free = Channel(buffers, [_DeviceMemory() for _ in range(buffers)], last_in_first_out=True)
        self._arrived: Channel[_Arrival] = Channel(buffers)
        self._stopped = threading.Event()
        self._start_seconds = owner._clock()
        self.records: Channel[StepRecord] = Channel(RECORDS_AHEAD)

    def stop(self) -> None:
        self._stopped.set()
        for channel in (self._free, self._arrived, self.records):
            channel.close()
        self._source.cancel()

    def feed(self) -> None:
        """The infeed thread."""
        try:
            clock = self._owner._clock
            # `closing` ends the reader of the dataset in this thread, whatever ends the loop.
            with contextlib.closing(iter(self._source)) as batches:
                for batch, memory in zip(batches, self._free, strict=False):
                    before = clock()
                    examples = _count_examples(batch)
                    memory.copy(batch)
                    after = clock()
                    tags = {
                        name: np.array(value) for name, value in batch.items() if name not in memory._bytes
                    }
                    if not self._arrived.put(_Arrival(memory, after, after - before, examples, tags)):
                        return
            self._arrived.finish()
        except BaseException as error:  # every kind is raised again, in the caller's thread
            self._arrived.finish(error)

    def work(self) -> None:
        """The device thread."""
        try:
            timeline = DeviceTimeline(self._start_seconds)
            generator = np.random.default_rng(self._owner._seed)
            for index, arrival in enumerate(self._arrived):
                duration = self._owner._duration_seconds(arrival.examples, generator)
                slot = timeline.schedule(arrival.seconds, duration)
                self._owner._wait_until(slot.end_seconds, self._stopped)
                if self._stopped.is_set():
                    return
                self._free.put(arrival.memory)
                record = StepRecord(
                    index=index,
                    wait_seconds=slot.wait_seconds,
                    start_seconds=slot.start_seconds,
                    end_seconds=slot.end_seconds,
                    transfer_seconds=arrival.transfer_seconds,
                    examples=arrival.examples,
                    tags=arrival.tags,
                )
                if not self.records.put(record):
                    return
            self.records.finish()
        except BaseException as error:  # the pipeline's own error arrives here after its last good batch
            self.records.finish(error)


def _count_examples(batch: Batch) -> int:
    images, labels = batch["image"], batch["label"]
    if images.ndim == 0 or labels.ndim == 0 or len(images) != len(labels):
        raise DataError(
            f"A batch has images of shape {images.shape} and labels of shape {labels.shape}, but both must "
            "begin with the same batch dimension. Put a batch stage at the end of the pipeline."
        )
    return len(images)
