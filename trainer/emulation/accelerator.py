"""An accelerator that is not there: takes real batches and holds the device for the step time of a preset."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from echoing.checks import check_integer, check_number
from echoing.errors import OptionError
from trainer.batch_source import BatchSource
from trainer.channel import Channel
from trainer.device_echo import DeviceEcho
from trainer.emulation.device_memory import Arrival, Contents, DeviceMemory
from trainer.emulation.device_timeline import DeviceTimeline
from trainer.emulation.presets import Preset, get_preset
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

    A batch with the feature `device_uses` is used on so many consecutive steps, without another copy; its
    memory becomes free when the last of them ends. See `DeviceEcho` for repeats that fill the time until the
    next batch has arrived: a batch that arrives when a step ends counts as arrived.

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
        device_echo: elastic echo on the device. Re-augmentation is accepted and, like the training, not
            carried out.
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
        device_echo: DeviceEcho | None = None,
        clock: Callable[[], float] = time.monotonic,
        wait_until: WaitUntil | None = None,
    ) -> None:
        self._batch_size = check_integer("batch_size", batch_size, minimum=1)
        self._jitter = check_number("jitter", jitter, minimum=0, maximum=1)
        self._seed = check_integer("seed", seed, minimum=0)
        self._queue_depth = check_integer("queue_depth", queue_depth, minimum=1)
        self._echo = device_echo or DeviceEcho()
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


class _Run:
    """The two threads of one call of `steps`, and what connects them."""

    def __init__(self, owner: EmulatedAccelerator, dataset: Any) -> None:
        self._owner = owner
        self._source = BatchSource(dataset)
        buffers = owner._queue_depth + 1
        # The buffer used last is reused first: a run that waits for its host touches one buffer, not all.
        self._free = Channel(buffers, [DeviceMemory() for _ in range(buffers)], last_in_first_out=True)
        self._arrived: Channel[Arrival] = Channel(buffers)
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
                    contents = Contents.of(batch, self._owner._echo)
                    memory.copy(batch)
                    # Stamped in the moment when the device can see it: what the device does not find when a
                    # step ends has arrived later than that, however the threads were scheduled.
                    if not self._arrived.put_made(partial(self._arrive, memory, before, contents)):
                        return
            self._arrived.finish()
        except BaseException as error:  # every kind is raised again, in the caller's thread
            self._arrived.finish(error)

    def _arrive(self, memory: DeviceMemory, before_seconds: float, contents: Contents) -> Arrival:
        now_seconds = self._owner._clock()
        return Arrival(memory, now_seconds, now_seconds - before_seconds, contents)

    def work(self) -> None:
        """The device thread."""
        try:
            timeline = DeviceTimeline(self._start_seconds)
            generator = np.random.default_rng(self._owner._seed)
            arrivals = iter(self._arrived)
            held, repeat, index = next(arrivals, None), 0, 0
            while held is not None:
                examples = held.contents.examples
                slot = timeline.schedule(held.seconds, self._owner._duration_seconds(examples, generator))
                self._owner._wait_until(slot.end_seconds, self._stopped)
                if self._stopped.is_set():
                    return
                record = StepRecord(
                    index=index,
                    wait_seconds=slot.wait_seconds,
                    start_seconds=slot.start_seconds,
                    end_seconds=slot.end_seconds,
                    transfer_seconds=0.0 if repeat else held.transfer_seconds,
                    examples=examples,
                    device_repeat=repeat,
                    tags=held.contents.tags,
                )
                following = self._choose(held, repeat + 1, slot.end_seconds)
                if following is not held:
                    self._free.put(held.memory)
                if not self.records.put(record):
                    return
                index += 1
                if following is held:
                    repeat += 1
                else:
                    held, repeat = following or next(arrivals, None), 0
            self.records.finish()
        except BaseException as error:  # the pipeline's own error arrives here after its last good batch
            self.records.finish(error)

    def _choose(self, held: Arrival, uses: int, end_seconds: float) -> Arrival | None:
        """Returns the batch of the next step, or None if it has to be waited for.

        Args:
            held: the batch of the step that ended.
            uses: how often it has been used.
            end_seconds: when that step ended.
        """
        if uses < held.contents.uses:
            return held
        if uses >= held.contents.max_uses:
            return None
        # By the times of the schedule: this thread may have woken later than the step ended, and what came in
        # between came too late. That the data has ended, though, is heeded as soon as it is known.
        arrived = self._arrived.take_if(lambda next_batch: next_batch.seconds <= end_seconds)
        return held if arrived is None and not self._arrived.is_drained else arrived
