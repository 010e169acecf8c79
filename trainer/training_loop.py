"""Several training steps inside one compiled function, each timed where it runs."""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import tensorflow as tf

from trainer.device_echo import DEVICE_USES
from trainer.feed import COLOR_SHIFT, Feed, as_feed, images_shape
from trainer.held_batch import HeldBatch
from trainer.loop_report import LoopStatus, TimedStep
from trainer.time_stamp import time_stamp
from trainer.transfer import HOST, Transfer


class TrainingLoop:
    """Runs a step function over an iterator's batches without returning to Python in between.

    The steps' figures leave through a queue, like a TPU's outfeed, and not as results of the function: when
    the pipeline fails in the middle of a loop, the function has no results, but the steps before it were done
    and must be counted. A queue also takes tags of any shape, such as those of a smaller last batch.

    Where the elements have `device_uses`, a batch stays on the device for so many steps (see `HeldBatch`),
    also across calls of `run`: limits are exact, wherever they fall.

    Args:
        step_function: maps image, label, the step's number and how many steps have used the batch before
            (both int64) to the loss, on the device, and updates the variables. Where the elements have
            `color_shift`, it is the fifth argument.
        element_spec: specification of the dataset's elements, a dictionary of `tf.TensorSpec`.
        image_size: height and width that the images must have, pixels.
        num_classes: labels must be 0 to `num_classes - 1`.
        device: TensorFlow's name of the device that the step function runs on, or the feed of several.
        steps_per_loop: the most steps of one call.
        layout: of the images, `nhwc` or `hwcn`.
    """

    def __init__(
        self,
        step_function: Callable[..., Any],
        element_spec: Mapping[str, Any],
        image_size: int,
        num_classes: int,
        device: str | Feed,
        steps_per_loop: int,
        layout: str = "nhwc",
    ) -> None:
        self._step_function = step_function
        self.steps_per_loop = steps_per_loop
        self._images_shape = images_shape(image_size, layout)
        self.num_classes = num_classes
        self._feed = as_feed(device)
        self._tag_names = sorted(set(element_spec) - {"image", "label", DEVICE_USES, COLOR_SHIFT})
        self._inputs = ["label", COLOR_SHIFT] if COLOR_SHIFT in element_spec else ["label"]
        self._held = None
        if DEVICE_USES in element_spec:
            image = element_spec["image"]
            spec = tf.TensorSpec(image.shape.merge_with(self._images_shape), image.dtype)
            self._held = HeldBatch({**element_spec, "image": spec}, self._feed, layout)
        with tf.device(HOST):
            self._queue = tf.queue.FIFOQueue(
                steps_per_loop, [tf.float64] + [element_spec[name].dtype for name in self._tag_names]
            )
            self._stopped = tf.Variable(False, trainable=False)
        # Traced now, so that no tracing falls into the time of the first step.
        number = tf.TensorSpec([], tf.int64)
        self._compiled = tf.function(self._loop, autograph=False).get_concrete_function(
            tf.data.IteratorSpec(element_spec), number, number
        )

    def reset(self) -> None:
        """Makes it ready for another dataset, after a run that was stopped or failed."""
        self.release()
        self.skip_uses(0)
        self._stopped.assign(False)
        collections.deque(self.finished_steps(), maxlen=0)

    def release(self) -> None:
        """Gives up the batch that the device holds, if any, with the uses that are left of it."""
        if self._held is not None:
            self._held.release()

    def skip_uses(self, uses: int) -> None:
        """Counts the first uses of the next batch as done: those of the run that this one goes on with."""
        if self._held is not None:
            self._held.skipped.assign(uses)

    def uses_done(self) -> int:
        """Returns how often the batch held for further steps was used, 0 if none is held."""
        return 0 if self._held is None else self._held.uses_done()

    def run(self, iterator: Any, limit: int, first_step: int) -> tuple[LoopStatus, list[int], float]:
        """Runs until the limit, the end of the data, a batch that is refused, a bad loss, or `stop`.

        Args:
            iterator: of a dataset with the specification that the loop was built for.
            limit: the most steps to do.
            first_step: number of the first of them.

        Returns:
            Why it ended; the values for which a batch was refused, if it was: its labels outside the range,
            or its uses; and when it began, in wall-clock seconds.
        """
        began, status, refused = self._compiled(
            iterator, tf.constant(limit, tf.int64), tf.constant(first_step, tf.int64)
        )
        return LoopStatus(int(status)), [int(value) for value in refused], float(began)

    def stop(self) -> None:
        """Ends a loop that runs in another thread after the step that it is in."""
        self._stopped.assign(True)

    def finished_steps(self) -> Iterator[TimedStep]:
        """Yields, once each, the steps done by the last call of `run`, also if that call failed."""
        for _ in range(int(self._queue.size())):
            # A queue of one component gives a tensor, and not a list.
            figures, *tags = self._queue.dequeue() if self._tag_names else [self._queue.dequeue()]
            arrived, started, ended, loss, examples, repeat, _ = figures.numpy().tolist()
            yield TimedStep(
                arrived,
                started,
                ended,
                loss,
                int(examples),
                {name: tag.numpy() for name, tag in zip(self._tag_names, tags, strict=True)},
                int(repeat),
            )

    def _loop(self, iterator: Any, limit: Any, first_step: Any) -> tuple[Any, Any, Any]:
        advance = self._train_on_next if self._held is None else self._train_on_held

        def wanted(count: Any, status: Any, refused: Any) -> Any:
            going = tf.equal(status, LoopStatus.LIMIT_REACHED.value)
            return going & (count < limit) & tf.logical_not(self._stopped)

        def body(count: Any, status: Any, refused: Any) -> tuple[Any, Any, Any]:
            status, refused = advance(iterator, first_step + count)
            return count + 1, status, refused

        with tf.device(HOST):
            began = time_stamp()
            _, status, refused = tf.while_loop(
                wanted,
                body,
                (tf.cast(began < 0, tf.int64), *_outcome(LoopStatus.LIMIT_REACHED)),
                shape_invariants=(tf.TensorShape([]), tf.TensorShape([]), tf.TensorShape([None])),
                parallel_iterations=1,
            )
        return began, status, refused

    def _train_on_next(self, iterator: Any, step: Any) -> tuple[Any, Any]:
        """Takes a batch and trains on it."""

        def train(batch: Mapping[str, Any], arrived: Any) -> tuple[Any, Any]:
            loaded, transfer = self._feed.load(batch, arrived)
            return self._train(loaded, tf.constant(0, tf.int64), step, transfer)

        return self._take(iterator, train, _outcome)

    def _train_on_held(self, iterator: Any, step: Any) -> tuple[Any, Any]:
        """Trains on the batch that the device holds; takes the next one first if it is used up."""
        held = self._held
        assert held is not None

        def take() -> Any:
            never = Transfer.at(tf.constant(0.0, tf.float64))
            # Released first, so that two batches at a time do not lie in the device's memory.
            with tf.control_dependencies([held.release()]):
                return self._take(iterator, hold, lambda *why: (*_outcome(*why), never))

        def hold(batch: Mapping[str, Any], arrived: Any) -> Any:
            loaded, transfer = self._feed.load(batch, arrived)
            with tf.control_dependencies([held.hold({**batch, "image": loaded["image"]})]):
                return *_outcome(LoopStatus.LIMIT_REACHED), transfer.after_dependencies()

        def train() -> tuple[Any, Any]:
            batch, repeat = held.use()
            return self._train(batch, repeat, step, transfer)

        status, refused, transfer = tf.cond(
            held.is_used_up(),
            take,
            lambda: (*_outcome(LoopStatus.LIMIT_REACHED), Transfer.at(time_stamp())),
        )
        ready = tf.equal(status, LoopStatus.LIMIT_REACHED.value) & (transfer.started > 0)
        return tf.cond(ready, train, lambda: (status, refused))

    def _take(self, iterator: Any, use: Callable[[Any, Any], Any], refuse: Callable[..., Any]) -> Any:
        """Takes a batch; returns what `use` makes of it and its time of arrival, or `refuse` of a status."""
        element = iterator.get_next_as_optional()
        has_value = element.has_value()
        with tf.control_dependencies([has_value]):
            arrived = time_stamp()
        # Time stamps order the work by the data that flows from them: control dependencies on a tensor
        # from outside a branch do not survive TensorFlow's inlining of the branch.
        return tf.cond(
            has_value & (arrived > 0),
            lambda: self._check(element.get_value(), arrived, use, refuse),
            lambda: refuse(LoopStatus.DATASET_ENDED),
        )

    def _check(self, batch: Mapping[str, Any], arrived: Any, use: Any, refuse: Any) -> Any:
        """Refuses a batch whose label is outside the range, which a device would turn into a NaN."""
        image = tf.ensure_shape(batch["image"], self._images_shape)
        labels = tf.cast(batch["label"], tf.int64)
        outside = tf.boolean_mask(labels, (labels < 0) | (labels >= self.num_classes))
        cases = [(tf.size(outside) > 0, lambda: refuse(LoopStatus.LABELS_OUTSIDE, outside))]
        if self._feed.parts > 1:
            rows = tf.size(labels, out_type=tf.int64)
            uneven = rows % self._feed.parts > 0
            cases.append((uneven, lambda: refuse(LoopStatus.BATCH_UNEVEN, rows[tf.newaxis])))
        if self._held is not None:
            uses = tf.cast(batch[DEVICE_USES], tf.int64)
            used_up = uses <= self._held.skipped
            cases.append((used_up, lambda: refuse(LoopStatus.USES_BELOW_ONE, uses[tf.newaxis])))
        return tf.case(cases, default=lambda: use({**batch, "image": image}, arrived))

    def _train(self, batch: Any, repeat: Any, step: Any, transfer: Transfer) -> tuple[Any, Any]:
        label, *colors = (batch[name] for name in self._inputs)
        with tf.control_dependencies([transfer.started]), self._feed.place():
            loss = self._step_function(batch["image"], label, step, repeat, *colors)
        with tf.control_dependencies([loss]):
            done = self._feed.done(loss)
        finite = tf.reduce_all(tf.math.is_finite(done))
        with tf.control_dependencies([finite]):
            ended = time_stamp()
        examples = tf.shape(batch["label"], out_type=tf.int64)[0]
        # One tensor for all numbers, because each costs the reader some 10 microseconds; float64 holds them
        # exactly.
        figures = (transfer.arrived, transfer.started, ended, done[0], examples, repeat, transfer.probe)
        tags = [batch[name] for name in self._tag_names]
        report = self._queue.enqueue([tf.stack([tf.cast(number, tf.float64) for number in figures]), *tags])
        with tf.control_dependencies([report]):
            status = tf.where(
                finite & (ended > 0), LoopStatus.LIMIT_REACHED.value, LoopStatus.LOSS_NOT_FINITE.value
            )
        return status, tf.zeros([0], tf.int64)


def _outcome(status: LoopStatus, values: Any = None) -> tuple[Any, Any]:
    """Returns a status and the values for which a batch was refused, int64 [any]."""
    return tf.constant(status.value, tf.int32), tf.zeros([0], tf.int64) if values is None else values
