"""The reference trainer's learning rate: in proportion to the batch, decaying in stairs, with a warm-up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from echoing.checks import check_integer, check_number
from echoing.errors import OptionError

LEARNING_RATE_PER_256 = 0.165
"""Learning rate for a batch of 256 examples; the reference trainer's `learning_rate`."""
COLD_SHARE = 0.1
"""Share of the warmed-up rate that the cold epochs train with; the reference trainer's constant."""


def scaled_learning_rate(batch_size: int, rate_per_256: float = LEARNING_RATE_PER_256) -> float:
    """Returns the learning rate for a batch: so much for 256 examples, in proportion to the batch.

    Linear scaling, as of Goyal et al. 2017, arXiv:1706.02677.

    Raises:
        OptionError: the batch size is no integer >= 1, or the rate is not > 0.
    """
    check_number("learning_rate", rate_per_256, minimum=0, exclusive_minimum=True)
    return rate_per_256 * check_integer("batch_size", batch_size, minimum=1) / 256


@dataclass(frozen=True)
class LearningRateSchedule:
    """The learning rate of every step, as the Cloud TPU Inception v3 reference trainer computes it.

    The initial rate is `rate_per_256 x batch_size / 256`. Every `decay_epochs` epochs, rounded down to whole
    steps, it is multiplied by `decay`, but it never falls below `minimum_share` of the initial rate.

    With a warm-up the rate of epoch `e` (a whole number, from 0) is, for `c` cold epochs, `w` warm-up epochs
    and `d` decay epochs, and with `a = initial x decay^((c + w) / d)`:

    - `e < c`: `0.1 a`
    - `c <= e < c + w + d`: `0.1 a + (e - c + 1) x 0.9 a / (w + d - 1)`, a climb in stairs of one epoch
    - then the stairs above, as if they had begun at step 0.

    The climb reaches `a` one epoch before it ends, and its last epoch overshoots `a`: 0.603 against 0.548
    with the defaults at a batch of 1024. The reference does so, though its guide has the climb end where it
    meets the stairs. `overshoot=False` holds the last epoch at `a`.

    Two deviations from the reference's formula. With no warm-up epochs there is no climb, where the formula
    may divide by zero: the stairs follow the cold epochs. And the rate never exceeds the initial one, which
    short climbs would overshoot: one warm-up epoch and one decay epoch lead to `1.9 a`.

    The same step always has the same rate, however often a run was stopped and resumed: there is no state.

    Attributes:
        batch_size: examples of a step over all replicas.
        examples_per_epoch: examples of the training set; 1,281,167 for ImageNet.
        rate_per_256: learning rate for a batch of 256 examples, > 0.
        decay: factor of one stair, > 0 and <= 1.
        decay_epochs: length of a stair, epochs, > 0 and at least one step.
        warm_up: whether there are cold and warm-up epochs at all; off in the reference by default.
        cold_epochs: epochs at the low rate in the beginning.
        warm_up_epochs: epochs of the climb, which in fact takes `decay_epochs` more; 0 for none.
        overshoot: whether the last epoch of the climb overshoots as in the reference.
        minimum_share: lowest rate as a share of the initial one, 0 to 1.
        train_steps: length of the run, steps, only to refuse a warm-up that is longer; None if not known.

    Raises:
        OptionError: a value is not allowed; a stair is shorter than a step; the cold and warm-up epochs are
            longer than the run.
    """

    batch_size: int
    examples_per_epoch: int
    rate_per_256: float = LEARNING_RATE_PER_256
    decay: float = 0.94
    decay_epochs: float = 3
    warm_up: bool = False
    cold_epochs: int = 2
    warm_up_epochs: int = 7
    overshoot: bool = True
    minimum_share: float = 1e-4
    train_steps: int | None = None

    def __post_init__(self) -> None:
        scaled_learning_rate(self.batch_size, self.rate_per_256)
        check_integer("examples_per_epoch", self.examples_per_epoch, minimum=1)
        check_number("learning_rate_decay", self.decay, minimum=0, maximum=1, exclusive_minimum=True)
        check_number("learning_rate_decay_epochs", self.decay_epochs, minimum=0, exclusive_minimum=True)
        check_integer("cold_epochs", self.cold_epochs, minimum=0)
        check_integer("warmup_epochs", self.warm_up_epochs, minimum=0)
        check_number("minimum_share", self.minimum_share, minimum=0, maximum=1)
        if self.decay_steps < 1:
            raise OptionError(
                "learning_rate_decay_epochs",
                self.decay_epochs,
                f"at least one step of {self.batch_size} of the {self.examples_per_epoch} examples",
                "Use a smaller batch, or let the rate decay more slowly.",
            )
        if self.train_steps is not None:
            check_integer("train_steps", self.train_steps, minimum=1)
            if self.warm_up and self.warm_up_steps > self.train_steps:
                raise OptionError(
                    "train_steps",
                    self.train_steps,
                    f">= {self.warm_up_steps}, the steps of {self.cold_epochs} cold and "
                    f"{self.warm_up_epochs} warm-up epochs",
                    "The run would end before the rate is warmed up: train longer, or use fewer of these "
                    "epochs or no warm-up.",
                )

    @property
    def initial_rate(self) -> float:
        """The rate that the stairs begin with, and the highest of all."""
        return scaled_learning_rate(self.batch_size, self.rate_per_256)

    @property
    def decay_steps(self) -> int:
        """Length of a stair, steps: `decay_epochs` rounded down."""
        return int(self.decay_epochs * self.examples_per_epoch / self.batch_size)

    @property
    def warm_up_steps(self) -> int:
        """Steps of the cold and the warm-up epochs together, rounded up; the climb goes on after them."""
        epochs = self.cold_epochs + self.warm_up_epochs
        return -(-epochs * self.examples_per_epoch // self.batch_size)

    def epoch(self, step: Any) -> Any:
        """Returns the whole epochs trained before a step: an int for an int, int64 [] for an int64 tensor."""
        # In integers: the reference divides in float32, which from 2^24 steps on is off by whole steps.
        return step * self.batch_size // self.examples_per_epoch

    def at(self, step: int) -> float:
        """Returns the learning rate of a step.

        Args:
            step: number of the step, from 0.

        Raises:
            OptionError: the step is no integer >= 0.
        """
        check_integer("step", step, minimum=0)
        rate = self.initial_rate * self.decay ** (step // self.decay_steps)
        epoch = self.epoch(step)
        if self.warm_up and epoch < self._climb_end:
            rate = self._climb_start
            if epoch >= self.cold_epochs:
                rate = min(rate + (epoch - self.cold_epochs + 1) * self._climb_rise, self._climb_limit)
        return max(rate, self.minimum_share * self.initial_rate)

    def __call__(self, step: Any) -> Any:
        """Returns the learning rate of a step, float32 [], inside a graph or eagerly.

        It equals `at`, rounded to float32: both compute in float64.

        Args:
            step: number of the step, from 0, int64 [].
        """
        import tensorflow as tf

        def number(value: float) -> Any:
            return tf.constant(value, tf.float64)

        step = tf.cast(step, tf.int64)
        stairs = tf.cast(step // self.decay_steps, tf.float64)
        rate = self.initial_rate * tf.pow(number(self.decay), stairs)
        if self.warm_up:
            epoch = tf.cast(self.epoch(step), tf.float64)
            climbed = self._climb_start + (epoch - self.cold_epochs + 1) * self._climb_rise
            climbed = tf.minimum(climbed, self._climb_limit)
            warming = tf.where(epoch < self.cold_epochs, number(self._climb_start), climbed)
            rate = tf.where(epoch < self._climb_end, warming, rate)
        return tf.cast(tf.maximum(rate, self.minimum_share * self.initial_rate), tf.float32)

    @property
    def _warm_rate(self) -> float:
        """The rate `a` that the climb leads to: that of the stairs after the warm-up epochs, not rounded."""
        return self.initial_rate * self.decay ** (
            (self.cold_epochs + self.warm_up_epochs) / self.decay_epochs
        )

    @property
    def _climb_start(self) -> float:
        """The rate of the cold epochs."""
        return COLD_SHARE * self._warm_rate

    @property
    def _climb_rise(self) -> float:
        """How much the rate rises in each epoch of the climb."""
        if not self.warm_up_epochs:
            return 0.0
        return (1 - COLD_SHARE) * self._warm_rate / (self.warm_up_epochs + self.decay_epochs - 1)

    @property
    def _climb_limit(self) -> float:
        """The highest rate of the climb."""
        return self.initial_rate if self.overshoot else self._warm_rate

    @property
    def _climb_end(self) -> float:
        """The epoch at which the stairs take over."""
        return self.cold_epochs + (self.warm_up_epochs + self.decay_epochs if self.warm_up_epochs else 0)
