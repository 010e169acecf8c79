"""Several training steps inside one compiled function, each timed where it runs."""

from __future__ import annotations

import collections
import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

HOST = "/device:CPU:0"


class LoopStatus(enum.IntEnum):
    """Why a loop returned."""

    LIMIT_REACHED = 0
    DATASET_ENDED = 1
    LABELS_OUTSIDE = 2
    LOSS_NOT_FINITE = 3


@dataclass(frozen=True)
class TimedStep:
    """What the compiled loop reports of one step; times are wall-clock seconds (`tf.timestamp`).

    Attributes:
        arrived_seconds: the batch was taken from the iterator.
        started_seconds: it lay in the device's memory and the step could begin.
        ended_seconds: the loss was computed and the variables were updated.
        loss: the training loss.
        examples: examples of the batch.
        tags: features beside image and label.
    """

    arrived_seconds: float
    started_seconds: float
    ended_seconds: float
    loss: float
    examples: int
    tags: Mapping[str, np.ndarray[Any, Any]]


class TrainingLoop:
    """Runs a step function over an iterator's batches without returning to Python in between.

    The steps' figures leave through a queue, like a TPU's outfeed, and not as results of the function: when
    the pipeline fails in the middle of a loop, the function has no results, but the steps before it were done
    and must be counted. A queue also takes tags of any shape, such as those of a smaller last batch.

    Args:
        step_function: maps image, label and the step's number (int64) to the loss, on the device, and updates
            the variables.
        element_spec: specification of the dataset's elements, a dictionary of `tf.TensorSpec`.
        image_size: height and width that the images must have, pixels.
        num_classes: labels must be 0 to `num_classes - 1`.
        device: TensorFlow's name of the device that the step function runs on.
        steps_per_loop: the most steps of one call.
    """

    def __init__(
        self,
        step_function: Callable[[Any, Any, Any], Any],
        element_spec: Mapping[str, Any],
        image_size: int,
        num_classes: int,
        device: str,
        steps_per_loop: int,
    ) -> None:
        self._step_function = step_function
        self.steps_per_loop = steps_per_loop
        self._image_size = image_size
        self.num_classes = num_classes
        self._device = device
        self._tag_names = sorted(name for name in element_spec if name not in ("image", "label"))
        types = [tf.float64, tf.float64, tf.float64, tf.float32, tf.int64, tf.float32]
        with tf.device(HOST):
            self._queue = tf.queue.FIFOQueue(
                steps_per_loop, types + [element_spec[name].dtype for name in self._tag_names]
            )
            self._stopped = tf.Variable(False, trainable=False)
        # Traced now, so that no tracing falls into the time of the first step.
        number = tf.TensorSpec([], tf.int64)
        self._compiled = tf.function(self._loop, autograph=False).get_concrete_function(
            tf.data.IteratorSpec(element_spec), number, number
        )

    def reset(self) -> None:
        """Makes it ready for another dataset, after a run that was stopped or failed."""
        self._stopped.assign(False)
        collections.deque(self.finished_steps(), maxlen=0)

    def run(self, iterator: Any, limit: int, first_step: int) -> tuple[LoopStatus, list[int], float]:
        """Runs until the limit, the end of the data, a bad label, a bad loss, or `stop`.

        Args:
            iterator: of a dataset with the specification that the loop was built for.
            limit: the most steps to do.
            first_step: number of the first of them.

        Returns:
            Why it ended; the labels of the batch that was refused, if any; and when it began, in wall-clock
            seconds.
        """
        began, status, outside = self._compiled(
            iterator, tf.constant(limit, tf.int64), tf.constant(first_step, tf.int64)
        )
        return LoopStatus(int(status)), [int(label) for label in outside], float(began)

    def stop(self) -> None:
        """Ends a loop that runs in another thread after the step that it is in."""
        self._stopped.assign(True)

    def finished_steps(self) -> Iterator[TimedStep]:
        """Yields, once each, the steps done by the last call of `run`, also if that call failed."""
        for _ in range(int(self._queue.size())):
            arrived, started, ended, loss, examples, _, *tags = self._queue.dequeue()
            yield TimedStep(
                float(arrived),
                float(started),
                float(ended),
                float(loss),
                int(examples),
                {name: tag.numpy() for name, tag in zip(self._tag_names, tags, strict=True)},
            )

    def _loop(self, iterator: Any, limit: Any, first_step: Any) -> tuple[Any, Any, Any]:
        def wanted(count: Any, status: Any, outside: Any) -> Any:
            going = tf.equal(status, LoopStatus.LIMIT_REACHED.value)
            return going & (count < limit) & tf.logical_not(self._stopped)

        def body(count: Any, status: Any, outside: Any) -> tuple[Any, Any, Any]:
            element = iterator.get_next_as_optional()
            has_value = element.has_value()
            with tf.control_dependencies([has_value]):
                arrived = tf.timestamp()
            # Time stamps order the work by the data that flows from them: control dependencies on a tensor
            # from outside a branch do not survive TensorFlow's inlining of the branch.
            status, outside = tf.cond(
                has_value & (arrived > 0),
                lambda: self._attempt(element.get_value(), arrived, first_step + count),
                lambda: _outcome(LoopStatus.DATASET_ENDED),
            )
            return count + 1, status, outside

        with tf.device(HOST):
            began = tf.timestamp()
            _, status, outside = tf.while_loop(
                wanted,
                body,
                (tf.cast(began < 0, tf.int64), *_outcome(LoopStatus.LIMIT_REACHED)),
                shape_invariants=(tf.TensorShape([]), tf.TensorShape([]), tf.TensorShape([None])),
                parallel_iterations=1,
            )
        return began, status, outside

    def _attempt(self, batch: Mapping[str, Any], arrived: Any, step: Any) -> tuple[Any, Any]:
        """Trains on a batch unless a label is outside the range, which a device would turn into a NaN."""
        labels = tf.cast(batch["label"], tf.int64)
        outside = tf.boolean_mask(labels, (labels < 0) | (labels >= self.num_classes))
        return tf.cond(
            tf.equal(tf.size(outside), 0),
            lambda: self._train(batch, arrived, step),
            lambda: _outcome(LoopStatus.LABELS_OUTSIDE, outside),
        )

    def _train(self, batch: Mapping[str, Any], arrived: Any, step: Any) -> tuple[Any, Any]:
        image = tf.ensure_shape(batch["image"], [None, self._image_size, self._image_size, 3])
        label = batch["label"]
        started, probe = arrived, tf.constant(0.0)
        if self._device != HOST:
            image, label, started, probe = self._transfer(image, label)
        with tf.control_dependencies([started]):
            loss = self._step_function(image, label, step)
        # An accelerator's kernels are only queued when their ops return. A value computed on it after all
        # updates were queued, and read on the host, is there when the device has done them. The pair is a
        # real operation; a mere copy would be optimised away.
        with tf.control_dependencies([loss]), tf.device(self._device):
            done = tf.stack([loss, loss])
        finite = tf.reduce_all(tf.math.is_finite(done))
        with tf.control_dependencies([finite]):
            ended = tf.timestamp()
        examples = tf.shape(batch["label"], out_type=tf.int64)[0]
        tags = [batch[name] for name in self._tag_names]
        report = self._queue.enqueue([arrived, started, ended, done[0], examples, probe, *tags])
        with tf.control_dependencies([report]):
            status = tf.where(
                finite & (ended > 0), LoopStatus.LIMIT_REACHED.value, LoopStatus.LOSS_NOT_FINITE.value
            )
        return status, tf.zeros([0], tf.int64)

    def _transfer(self, image: Any, label: Any) -> tuple[Any, Any, Any, Any]:
        """Copies a batch to the device; returns it, when it was there, and a value that proves it."""
        with tf.device(self._device):
            image, label = tf.identity(image), tf.identity(label)
            corner = tf.reduce_sum(tf.cast(image[:1, :1, :1, :1], tf.float32))
        # Read on the host and reported, because what nobody reads is optimised away.
        probe = tf.math.abs(corner)
        with tf.control_dependencies([probe]):
            return image, label, tf.timestamp(), probe


def _outcome(status: LoopStatus, outside: Any = None) -> tuple[Any, Any]:
    labels = tf.zeros([0], tf.int64) if outside is None else outside
    return tf.constant(status.value, tf.int32), labels
