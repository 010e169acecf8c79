from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from echoing.errors import OptionError
from trainer.optimizers import Momentum, RMSProp, make_optimizer, scaled_learning_rate

GRADIENTS = np.random.default_rng(5).normal(size=(6, 3)).astype(np.float32)


def run(make: Any, gradients: np.ndarray[Any, Any], start: list[float]) -> list[list[float]]:
    variable = tf.Variable(start, dtype=tf.float32)
    optimizer = make([variable])
    values = []
    for gradient in gradients:
        optimizer.apply([tf.constant(gradient, tf.float32)])
        values.append(variable.numpy().tolist())
    return values


def test_rmsprop_gives_the_values_of_tensorflow_1_for_three_steps() -> None:
    values = run(lambda v: RMSProp(v, 0.66), np.full((3, 1), 0.5), [1.0])
    assert np.round(values, 4).ravel().tolist() == [0.7622, 0.3060, -0.3508]


def test_rmsprop_equals_a_loop_in_numpy() -> None:
    weights, square, moment = np.array([1.0, -2.0, 3.0]), np.ones(3), np.zeros(3)
    expected = []
    for gradient in GRADIENTS.astype(np.float64):
        square = 0.8 * square + 0.2 * gradient**2
        moment = 0.7 * moment + 0.1 * gradient / np.sqrt(square + 0.01)
        weights = weights - moment
        expected.append(weights)
    values = run(
        lambda v: RMSProp(v, 0.1, decay=0.8, momentum=0.7, epsilon=0.01), GRADIENTS, [1.0, -2.0, 3.0]
    )
    np.testing.assert_allclose(values, expected, rtol=1e-5)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=5),
    st.floats(0.01, 1),
    st.floats(0, 0.99),
    st.floats(0, 0.99),
    st.floats(1e-3, 1),
)
def test_rmsprop_equals_tensorflows_own_kernel(
    gradients: list[float], rate: float, decay: float, momentum: float, epsilon: float
) -> None:
    weight, square, moment = tf.Variable(1.0), tf.Variable(1.0), tf.Variable(0.0)
    expected = []
    for gradient in gradients:
        tf.raw_ops.ResourceApplyRMSProp(
            var=weight.handle,
            ms=square.handle,
            mom=moment.handle,
            lr=rate,
            rho=decay,
            momentum=momentum,
            epsilon=epsilon,
            grad=tf.constant(gradient, tf.float32),
        )
        expected.append(float(weight))
    values = run(
        lambda v: RMSProp(v, rate, decay, momentum, epsilon), np.array(gradients).reshape(-1, 1), [1.0]
    )
    np.testing.assert_allclose(np.ravel(values), expected, rtol=1e-4, atol=1e-4)


def test_momentum_adds_up_a_constant_gradient() -> None:
    # Accumulated: 1, 1.5, 1.75; each times 0.1 off the weight.
    values = run(lambda v: Momentum(v, 0.1, momentum=0.5), np.ones((3, 1)), [1.0])
    np.testing.assert_allclose(np.ravel(values), [0.9, 0.75, 0.575], rtol=1e-6)


def test_momentum_equals_a_loop_in_numpy() -> None:
    weights, accumulated = np.array([1.0, -2.0, 3.0]), np.zeros(3)
    for gradient in GRADIENTS.astype(np.float64):
        accumulated = 0.9 * accumulated + gradient
        weights = weights - 0.05 * accumulated
    values = run(lambda v: Momentum(v, 0.05), GRADIENTS, [1.0, -2.0, 3.0])
    np.testing.assert_allclose(values[-1], weights, rtol=1e-5)


def test_state_is_named_after_the_variable() -> None:
    optimizer = RMSProp([tf.Variable(1.0, name="a/weights")], 0.1)
    names = [variable.name for variable in optimizer.mean_squares + optimizer.momenta]
    assert names == ["a/weights/rms:0", "a/weights/momentum:0"]


@pytest.mark.parametrize(("batch_size", "rate"), [(256, 0.165), (1024, 0.66), (32, 0.020625)])
def test_learning_rate_is_proportional_to_the_batch(batch_size: int, rate: float) -> None:
    assert scaled_learning_rate(batch_size) == pytest.approx(rate)


def test_optimizers_are_made_by_name() -> None:
    variables = [tf.Variable(1.0)]
    assert isinstance(make_optimizer("rmsprop", variables, 0.1), RMSProp)
    assert isinstance(make_optimizer("momentum", variables, 0.1), Momentum)


@pytest.mark.parametrize("name", ["adam", "RMSProp", None])
def test_unknown_optimizer_is_refused_with_the_names(name: Any) -> None:
    with pytest.raises(OptionError, match="rmsprop, momentum"):
        make_optimizer(name, [tf.Variable(1.0)], 0.1)


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_learning_rate_that_is_not_positive_is_refused(rate: float) -> None:
    with pytest.raises(OptionError, match="learning_rate"):
        make_optimizer("momentum", [tf.Variable(1.0)], rate)


def test_wrong_number_of_gradients_is_an_error() -> None:
    with pytest.raises(ValueError):
        Momentum([tf.Variable(1.0), tf.Variable(2.0)], 0.1).apply([tf.constant(1.0)])
