"""Gradient descent, momentum and the RMSProp of TensorFlow 1, with their state in plain variables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import tensorflow as tf

from echoing.checks import check_choice, check_number

MOMENTUM = 0.9
"""Momentum of both optimizers that have one; the reference trainer's value."""
RMSPROP_DECAY, RMSPROP_EPSILON = 0.9, 1.0
"""The reference trainer's values."""

OPTIMIZERS = ("rmsprop", "momentum", "sgd")
"""The optimizers by name; the first is the reference trainer's default."""


class Optimizer(Protocol):
    """What the train step needs of an optimizer.

    An optimizer is made inside the scope of the distribution strategy, if there is one, so that its state is
    mirrored like the variables that it trains. It works on one replica and talks to no other one: gradients
    come averaged, hence all replicas move alike. A checkpoint of it holds its state, not what it trains.
    """

    @property
    def variables(self) -> tuple[Any, ...]:
        """The state, float32 variables in a fixed order, for checkpoints; empty without state."""

    def apply(self, gradients: Sequence[Any], learning_rate: Any) -> None:
        """Moves each variable by one step against its gradient.

        Args:
            gradients: one float32 tensor a variable, in the variables' order, averaged over the replicas.
            learning_rate: a number > 0, or a float32 scalar tensor.

        Raises:
            OptionError: the learning rate is a number and not > 0.
            ValueError: there are more or fewer gradients than variables, or one is None.
        """


class GradientDescent(tf.Module):
    """Plain gradient descent: `w = w - learning_rate g`.

    Args:
        variables: the variables to train, in the order in which gradients will come.
    """

    def __init__(self, variables: Sequence[Any]) -> None:
        super().__init__(name="GradientDescent")
        _keep_untracked(self, variables)

    @property
    def variables(self) -> tuple[Any, ...]:
        """See `Optimizer.variables`: there is no state."""
        return ()

    def apply(self, gradients: Sequence[Any], learning_rate: Any) -> None:
        """See `Optimizer.apply`."""
        rate = _checked(learning_rate)
        for variable, gradient in _steps(self._trained, gradients):
            variable.assign_sub(rate * gradient)


class Momentum(tf.Module):
    """Gradient descent with momentum: `a = momentum a + g`, `w = w - learning_rate a`.

    As in TensorFlow 1, a change of the learning rate acts on the whole accumulated gradient at once.

    Args:
        variables: the variables to train, in the order in which gradients will come.
        momentum: 0 to 1.

    Raises:
        OptionError: the momentum is not allowed.
    """

    def __init__(self, variables: Sequence[Any], momentum: float = MOMENTUM) -> None:
        super().__init__(name="Momentum")
        self._momentum = check_number("momentum", momentum, minimum=0, maximum=1)
        _keep_untracked(self, variables)
        self.accumulators = [_slot(variable, "momentum", tf.zeros_like) for variable in variables]

    @property
    def variables(self) -> tuple[Any, ...]:
        """See `Optimizer.variables`: an accumulator for each variable."""
        return tuple(self.accumulators)

    def apply(self, gradients: Sequence[Any], learning_rate: Any) -> None:
        """See `Optimizer.apply`."""
        rate = _checked(learning_rate)
        for variable, gradient, accumulator in _steps(self._trained, gradients, self.accumulators):
            variable.assign_sub(rate * accumulator.assign(self._momentum * accumulator + gradient))


class RMSProp(tf.Module):
    """RMSProp as TensorFlow 1 computes it, which Keras does not.

    `s = decay s + (1 - decay) g^2`, `m = momentum m + learning_rate g / sqrt(s + epsilon)`, `w = w - m`.
    The mean square `s` starts at one, not at zero, so that the first steps are not too long; `epsilon` stands
    inside the root. The learning rate enters `m`, so that a change of it acts with the momentum's delay.

    Args:
        variables: the variables to train, in the order in which gradients will come.
        decay: of the mean square, 0 to 1.
        momentum: 0 to 1.
        epsilon: > 0.

    Raises:
        OptionError: a value is not allowed.
    """

    def __init__(
        self,
        variables: Sequence[Any],
        decay: float = RMSPROP_DECAY,
        momentum: float = MOMENTUM,
        epsilon: float = RMSPROP_EPSILON,
    ) -> None:
        super().__init__(name="RMSProp")
        self._decay = check_number("decay", decay, minimum=0, maximum=1)
        self._momentum = check_number("momentum", momentum, minimum=0, maximum=1)
        self._epsilon = check_number("epsilon", epsilon, minimum=0, exclusive_minimum=True)
        _keep_untracked(self, variables)
        self.mean_squares = [_slot(variable, "rms", tf.ones_like) for variable in variables]
        self.momenta = [_slot(variable, "momentum", tf.zeros_like) for variable in variables]

    @property
    def variables(self) -> tuple[Any, ...]:
        """See `Optimizer.variables`: all mean squares, then all momenta."""
        return (*self.mean_squares, *self.momenta)

    def apply(self, gradients: Sequence[Any], learning_rate: Any) -> None:
        """See `Optimizer.apply`."""
        rate = _checked(learning_rate)
        for variable, gradient, mean_square, moment in _steps(
            self._trained, gradients, self.mean_squares, self.momenta
        ):
            square = mean_square.assign(self._decay * mean_square + (1 - self._decay) * tf.square(gradient))
            update = rate * gradient * tf.math.rsqrt(square + self._epsilon)
            variable.assign_sub(moment.assign(self._momentum * moment + update))


def make_optimizer(name: str, variables: Sequence[Any]) -> Optimizer:
    """Returns the optimizer of that name with the reference's constants.

    Args:
        name: one of `OPTIMIZERS`.
        variables: the variables to train, in the order in which gradients will come.

    Raises:
        OptionError: there is none of that name.
    """
    check_choice("optimizer", name, OPTIMIZERS)
    return {"rmsprop": RMSProp, "momentum": Momentum, "sgd": GradientDescent}[name](variables)


def _keep_untracked(optimizer: Any, variables: Sequence[Any]) -> None:
    """Keeps the variables to train in an attribute that checkpoints of the optimizer do not follow."""
    # Past the `__setattr__` of tf.Module, which would make restoring the optimizer restore the model as well.
    object.__setattr__(optimizer, "_trained", tuple(variables))


def _slot(variable: Any, name: str, initial: Any) -> Any:
    """Returns a variable of the shape of another, named after it."""
    return tf.Variable(
        initial(variable), trainable=False, name=f"{variable.name.split(':', maxsplit=1)[0]}/{name}"
    )


def _checked(learning_rate: Any) -> Any:
    """Returns the learning rate; a tensor's value is known on the device only and is not checked."""
    if tf.is_tensor(learning_rate):
        return learning_rate
    return check_number("learning_rate", learning_rate, minimum=0, exclusive_minimum=True)


def _steps(variables: Sequence[Any], gradients: Sequence[Any], *slots: Sequence[Any]) -> Iterator[Any]:
    """Yields each variable with its gradient and its slots."""
    for variable, gradient, *state in zip(variables, gradients, *slots, strict=True):
        if gradient is None:
            raise ValueError(f"The loss does not depend on {variable.name}: it has no gradient.")
        yield variable, gradient, *state
