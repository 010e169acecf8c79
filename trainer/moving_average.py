"""Exponential moving averages of variables, for replicas, checkpoints and evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from echoing.checks import check_number

MOVING_AVERAGE_DECAY = 0.995
"""The reference trainer's decay of the averages; its `num_updates` is the global step."""


class MovingAverage(tf.Module):
    """Keeps a shadow of each variable that follows it: `shadow -= (1 - decay) (shadow - variable)`.

    The same numbers, bit for bit, as `tf.train.ExponentialMovingAverage`, which can be neither checkpointed
    nor swapped and makes its shadows only when it is first used. Here the constructor makes them, with the
    variables' values; under a distribution strategy call it in the strategy's scope.

    `update` (or `apply`) belongs after the optimizer in the train step, also inside `strategy.run`. It works
    on one replica and talks to no other one: where the copies of a variable are equal, so are its shadows.

    Three ways to evaluate with the averages:

    1. In the training process: `with average.swapped(strategy): ...`, which puts the variables back after it,
       or read `average.average(variable)`.
    2. In another process, which restores the averages from a checkpoint and then calls `load`.
    3. In another process that has no `MovingAverage`: restore the averages straight into the model's
       variables with `averages_into`.

    A checkpoint of this object holds the shadows and not the variables.

    Args:
        variables: floating-point `tf.Variable`s, each once: the trainable ones and the moments of batch norm.
        decay: share of the old average, a number from 0 to 1 or a scalar `tf.Variable`, read at each update.
            The shadow follows the mean of about the last `1 / (1 - decay)` values.
        num_updates: count of training steps, a number or a scalar `tf.Variable`, read at each update; the
            decay is then at most `(1 + num_updates) / (10 + num_updates)`, so that early averages move
            faster. The reference passes the global step, already raised by this step.
        zero_debias: whether the averages begin with nothing rather than with the variables' initial values:
            a shadow is the filter begun at zero, divided by `1 - decay^n` after `n` updates (Kingma and Ba
            2015, arXiv:1412.6980, section 3), or by one less the product of the decays where they differ.
            TensorFlow's own class accepts the option but does nothing of the kind with variables. Before the
            first update shadows equal the variables.

    Raises:
        OptionError: a number is out of range.
        TypeError: a variable has no floating-point dtype.
        ValueError: a variable occurs twice; the decay or the count is no scalar.
    """

    def __init__(
        self, variables: Sequence[Any], decay: Any, num_updates: Any = None, zero_debias: bool = False
    ) -> None:
        super().__init__(name="MovingAverage")
        for variable in variables:
            if not variable.dtype.is_floating:
                raise TypeError(f"{variable.name} has the dtype {variable.dtype.name}, which has no average.")
        positions = {variable.ref(): position for position, variable in enumerate(variables)}
        if len(positions) < len(variables):
            raise ValueError("A variable stands twice among those to average.")
        # Past the `__setattr__` of tf.Module: a checkpoint of the averages must hold neither the model nor
        # the caller's counters, or else restoring the averages would restore these as well.
        for name, value in {
            "_averaged": tuple(variables),
            "_positions": positions,
            "_decay": _scalar("moving_average_decay", decay, maximum=1),
            "_num_updates": None if num_updates is None else _scalar("num_updates", num_updates),
        }.items():
            object.__setattr__(self, name, value)
        self.shadows = [
            tf.Variable(
                variable, trainable=False, name=f"{variable.name.split(':', maxsplit=1)[0]}/MovingAverage"
            )
            for variable in variables
        ]
        # Sum of the filter's weights so far: the average of a signal that is always one, begun at zero.
        self.weight = tf.Variable(0.0, trainable=False, name="MovingAverage/weight") if zero_debias else None
        self.is_swapped = False
        self._exchange = tf.function(self._exchange_under, autograph=False)

    @property
    def variables(self) -> tuple[Any, ...]:
        """The state in a fixed order, for checkpoints: the shadows, then the weight if there is one."""
        return (*self.shadows, *([] if self.weight is None else [self.weight]))

    def update(self) -> None:
        """Moves every shadow towards its variable: once a step, in a replica's context or eagerly.

        Raises:
            RuntimeError: the averages are swapped in; noticed eagerly and while a graph is traced.
        """
        if self.is_swapped:
            raise RuntimeError("The averages are swapped in; an update would average them with themselves.")
        rate = 1 - self._effective_decay()
        if self.weight is not None:
            # With w the new weight, (s w_old decay + (1 - decay) x) / w = s - (1 - decay) / w (s - x): the
            # debiased average needs no biased one beside it. Without weight (decay 1 so far) it stays.
            weight = self.weight + rate * (1 - self.weight)
            self.weight.assign(weight)
            rate = tf.math.divide_no_nan(rate, weight)
        for variable, shadow in zip(self._averaged, self.shadows, strict=True):
            shadow.assign_sub((shadow - variable) * tf.cast(rate, shadow.dtype))

    apply = update
    """What `tf.train.ExponentialMovingAverage` calls it."""

    def average(self, variable: Any) -> Any:
        """Returns the shadow of a variable, a `tf.Variable` of the same shape and dtype.

        Raises:
            KeyError: the variable is not averaged.
        """
        if variable.ref() not in self._positions:
            raise KeyError(f"{variable.name} is not averaged.")
        return self.shadows[self._positions[variable.ref()]]

    def load(self) -> None:
        """Overwrites each variable with its average, for a process that only evaluates."""
        for variable, shadow in zip(self._averaged, self.shadows, strict=True):
            variable.assign(shadow.read_value())

    def swap(self) -> None:
        """Exchanges each variable and its shadow exactly, in a replica's context or eagerly."""
        for variable, shadow in zip(self._averaged, self.shadows, strict=True):
            value = variable.read_value()
            variable.assign(shadow.read_value())
            shadow.assign(value)

    @contextmanager
    def swapped(self, strategy: Any = None) -> Iterator[None]:
        """Lets the variables hold their averages inside a `with` statement; puts them back on every way out.

        Nothing must be trained or saved meanwhile; `is_swapped` tells. It stays true if an exchange itself
        fails, since the variables are then in no known state.

        Args:
            strategy: the distribution strategy of the variables; None for the one whose scope is entered.

        Raises:
            RuntimeError: they hold them already.
        """
        if self.is_swapped:
            raise RuntimeError("The averages are swapped in already.")
        strategy = tf.distribute.get_strategy() if strategy is None else strategy
        self.is_swapped = True
        self._exchange(strategy)
        try:
            yield
        finally:
            self._exchange(strategy)
            self.is_swapped = False

    def _exchange_under(self, strategy: Any) -> None:
        strategy.run(self.swap)

    def _effective_decay(self) -> Any:
        """Returns the decay of this update, float32 []."""
        decay = tf.cast(self._decay, tf.float32)
        if self._num_updates is None:
            return decay
        updates = tf.cast(self._num_updates, tf.float32)
        return tf.minimum(decay, (1 + updates) / (10 + updates))


def averages_into(variables: Sequence[Any]) -> Any:
    """Returns what stands for a `MovingAverage` in a checkpoint and restores its averages into the variables.

    `tf.train.Checkpoint(average=averages_into(model_variables)).read(path)` makes the model one of averaged
    weights, if the checkpoint was written with `average=` a `MovingAverage` of the same variables in the
    same order. Name nothing else in it that reaches the same variables, or it is open which value they get.

    Call `.expect_partial()` on the result, since the rest of the checkpoint is left out, and
    `.assert_existing_objects_matched()`, which fails where the checkpoint has no averages.
    """
    return tf.train.Checkpoint(shadows=list(variables))


def _scalar(name: str, value: Any, maximum: float | None = None) -> Any:
    """Returns a checked number as a float, or a scalar variable or tensor as it is."""
    if isinstance(value, tf.Variable) or tf.is_tensor(value):
        if value.shape.rank != 0:
            raise ValueError(f"{name} has the shape {value.shape}, but must be a scalar.")
        return value
    return check_number(name, value, minimum=0, maximum=maximum)
