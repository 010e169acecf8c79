"""Momentum and the RMSProp of TensorFlow 1, with their state in plain variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from echoing.checks import check_choice, check_integer, check_number

LEARNING_RATE_PER_256 = 0.165
"""Learning rate for a batch of 256 examples; the reference trainer's `learning_rate`."""
MOMENTUM = 0.9
"""Both optimizers' momentum; the reference trainer's value."""
RMSPROP_DECAY, RMSPROP_EPSILON = 0.9, 1.0
"""The reference trainer's values."""

OPTIMIZERS = ("rmsprop", "momentum")
"""The optimizers by name; the first is the reference trainer's default."""


def scaled_learning_rate(batch_size: int) -> float:
    """Returns the reference's learning rate for a batch: 0.165 for 256 examples, in proportion to the batch.

    Raises:
        OptionError: the batch size is no integer >= 1.
    """
    return LEARNING_RATE_PER_256 * check_integer("batch_size", batch_size, minimum=1) / 256


class Momentum(tf.Module):
    """Gradient descent with momentum: `a = momentum a + g`, `w = w - learning_rate a`.

    Args:
        variables: the variables to train, in the order in which gradients will come.
        learning_rate: constant, > 0.
        momentum: 0 to 1.

    Raises:
        OptionError: a value is not allowed.
    """

    def __init__(self, variables: Sequence[Any], learning_rate: float, momentum: float = MOMENTUM) -> None:
        super().__init__(name="Momentum")
        self._learning_rate = check_number("learning_rate", learning_rate, minimum=0, exclusive_minimum=True)
        self._momentum = check_number("momentum", momentum, minimum=0, maximum=1)
        self._variables = list(variables)
        self.accumulators = [_slot(variable, "momentum", tf.zeros_like) for variable in variables]

    def apply(self, gradients: Sequence[Any]) -> None:
        """Moves each variable by one step against its gradient."""
        for variable, gradient, accumulator in zip(
            self._variables, gradients, self.accumulators, strict=True
        ):
            accumulated = accumulator.assign(self._momentum * accumulator + gradient)
            variable.assign_sub(self._learning_rate * accumulated)


class RMSProp(tf.Module):
    """RMSProp as TensorFlow 1 computes it, which Keras does not.

    `s = decay s + (1 - decay) g^2`, `m = momentum m + learning_rate g / sqrt(s + epsilon)`, `w = w - m`.
    The mean square `s` starts at one, not at zero, so that the first steps are not too long; `epsilon` stands
    inside the root.

    Args:
        variables: the variables to train, in the order in which gradients will come.
        learning_rate: constant, > 0.
        decay: of the mean square, 0 to 1.
        momentum: 0 to 1.
        epsilon: > 0.

    Raises:
        OptionError: a value is not allowed.
    """

    def __init__(
        self,
        variables: Sequence[Any],
        learning_rate: float,
        decay: float = RMSPROP_DECAY,
        momentum: float = MOMENTUM,
        epsilon: float = RMSPROP_EPSILON,
    ) -> None:
        super().__init__(name="RMSProp")
        self._learning_rate = check_number("learning_rate", learning_rate, minimum=0, exclusive_minimum=True)
        self._decay = check_number("decay", decay, minimum=0, maximum=1)
        self._momentum = check_number("momentum", momentum, minimum=0, maximum=1)
        self._epsilon = check_number("epsilon", epsilon, minimum=0, exclusive_minimum=True)
        self._variables = list(variables)
        self.mean_squares = [_slot(variable, "rms", tf.ones_like) for variable in variables]
        self.momenta = [_slot(variable, "momentum", tf.zeros_like) for variable in variables]

    def apply(self, gradients: Sequence[Any]) -> None:
        """Moves each variable by one step against its gradient."""
        for variable, gradient, mean_square, moment in zip(
            self._variables, gradients, self.mean_squares, self.momenta, strict=True
        ):
            square = mean_square.assign(self._decay * mean_square + (1 - self._decay) * tf.square(gradient))
            update = self._learning_rate * gradient * tf.math.rsqrt(square + self._epsilon)
            variable.assign_sub(moment.assign(self._momentum * moment + update))


def make_optimizer(name: str, variables: Sequence[Any], learning_rate: float) -> Momentum | RMSProp:
    """Returns the optimizer of that name with the reference's constants.

    Raises:
        OptionError: there is none of that name, or the learning rate is not > 0.
    """
    check_choice("optimizer", name, OPTIMIZERS)
    return (RMSProp if name == "rmsprop" else Momentum)(variables, learning_rate)


def _slot(variable: Any, name: str, initial: Any) -> Any:
    """Returns a variable of the shape of another, named after it."""
    return tf.Variable(
        initial(variable), trainable=False, name=f"{variable.name.split(':', maxsplit=1)[0]}/{name}"
    )
