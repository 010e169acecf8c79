from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from echoing.errors import OptionError
from trainer.optimizers import GradientDescent, Momentum, RMSProp, make_optimizer

GRADIENTS = np.random.default_rng(5).normal(size=(6, 3)).astype(np.float32)
RATES = [0.1, 0.1, 0.05, 0.2, 0.2, 0.01]
NAMES = ["rmsprop", "momentum", "sgd"]


def run(
    make: Any, gradients: np.ndarray[Any, Any], start: list[float], rates: Any = 0.1
) -> list[list[float]]:
    variable = tf.Variable(start, dtype=tf.float32)
    optimizer = make([variable])
    values = []
    for gradient, rate in zip(gradients, np.broadcast_to(rates, len(gradients)).tolist(), strict=True):
        optimizer.apply([tf.constant(gradient, tf.float32)], rate)
        values.append(variable.numpy().tolist())
    return values


def test_rmsprop_gives_the_values_of_tensorflow_1_for_three_steps() -> None:
    values = run(RMSProp, np.full((3, 1), 0.5), [1.0], 0.66)
    assert np.round(values, 4).ravel().tolist() == [0.7622, 0.3060, -0.3508]


def test_rmsprop_equals_a_loop_in_numpy() -> None:
    weights, square, moment = np.array([1.0, -2.0, 3.0]), np.ones(3), np.zeros(3)
    expected = []
    for gradient, rate in zip(GRADIENTS.astype(np.float64), RATES, strict=True):
        square = 0.8 * square + 0.2 * gradient**2
        moment = 0.7 * moment + rate * gradient / np.sqrt(square + 0.01)
        weights = weights - moment
        expected.append(weights)
    values = run(
        lambda v: RMSProp(v, decay=0.8, momentum=0.7, epsilon=0.01), GRADIENTS, [1.0, -2.0, 3.0], RATES
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
        lambda v: RMSProp(v, decay, momentum, epsilon), np.array(gradients).reshape(-1, 1), [1.0], rate
    )
    np.testing.assert_allclose(np.ravel(values), expected, rtol=1e-4, atol=1e-4)


def test_momentum_adds_up_a_constant_gradient() -> None:
    # Accumulated: 1, 1.5, 1.75; each times 0.1 off the weight.
    values = run(lambda v: Momentum(v, momentum=0.5), np.ones((3, 1)), [1.0])
    np.testing.assert_allclose(np.ravel(values), [0.9, 0.75, 0.575], rtol=1e-6)


def test_momentum_equals_a_loop_in_numpy() -> None:
    weights, accumulated = np.array([1.0, -2.0, 3.0]), np.zeros(3)
    for gradient, rate in zip(GRADIENTS.astype(np.float64), RATES, strict=True):
        accumulated = 0.9 * accumulated + gradient
        weights = weights - rate * accumulated
    values = run(Momentum, GRADIENTS, [1.0, -2.0, 3.0], RATES)
    np.testing.assert_allclose(values[-1], weights, rtol=1e-5)


def test_gradient_descent_subtracts_rate_times_gradient() -> None:
    # 1 - 0.1 x 2 = 0.8; 0.8 - 0.5 x -1 = 1.3.
    values = run(GradientDescent, np.array([[2.0], [-1.0]]), [1.0], [0.1, 0.5])
    np.testing.assert_allclose(np.ravel(values), [0.8, 1.3], rtol=1e-6)


def test_state_is_named_after_the_variable_and_listed_in_a_fixed_order() -> None:
    variables = [tf.Variable(1.0, name="a/weights"), tf.Variable([1.0, 2.0], name="b")]
    names = {name: [v.name for v in make_optimizer(name, variables).variables] for name in NAMES}
    assert names == {
        "rmsprop": ["a/weights/rms:0", "b/rms:0", "a/weights/momentum:0", "b/momentum:0"],
        "momentum": ["a/weights/momentum:0", "b/momentum:0"],
        "sgd": [],
    }


@pytest.mark.parametrize("name", NAMES)
def test_rate_may_be_a_tensor_that_changes_inside_a_graph(name: str) -> None:
    eager, traced = tf.Variable([1.0, -2.0, 3.0]), tf.Variable([1.0, -2.0, 3.0])
    optimizer, other = make_optimizer(name, [eager]), make_optimizer(name, [traced])
    apply = tf.function(lambda gradient, rate: other.apply([gradient], rate), autograph=False)
    for gradient, rate in zip(GRADIENTS, RATES, strict=True):
        optimizer.apply([tf.constant(gradient)], rate)
        apply(tf.constant(gradient), tf.constant(rate, tf.float32))
    np.testing.assert_allclose(traced.numpy(), eager.numpy(), rtol=1e-6)
    assert apply.experimental_get_tracing_count() == 1


@pytest.mark.parametrize("name", NAMES)
def test_training_goes_on_from_a_checkpoint_as_if_it_had_not_stopped(name: str, tmp_path: Path) -> None:
    def build() -> tuple[Any, Any, Any]:
        variable = tf.Variable([1.0, -2.0, 3.0])
        optimizer = make_optimizer(name, [variable])
        return variable, optimizer, tf.train.Checkpoint(model=[variable], state=list(optimizer.variables))

    variable, optimizer, checkpoint = build()
    for gradient in GRADIENTS[:3]:
        optimizer.apply([tf.constant(gradient)], 0.1)
    path = checkpoint.write(str(tmp_path / "checkpoint"))
    resumed, resumed_optimizer, empty = build()
    empty.read(path).assert_consumed()
    for gradient in GRADIENTS[3:]:
        optimizer.apply([tf.constant(gradient)], 0.1)
        resumed_optimizer.apply([tf.constant(gradient)], 0.1)
    assert resumed.numpy().tolist() == variable.numpy().tolist()


def test_checkpoint_of_an_optimizer_does_not_hold_the_variables_that_it_trains(tmp_path: Path) -> None:
    optimizer = make_optimizer("momentum", [tf.Variable([1.0, 2.0])])
    path = tf.train.Checkpoint(optimizer=optimizer).write(str(tmp_path / "checkpoint"))
    keys = [key for key, _ in tf.train.list_variables(path) if "VARIABLE_VALUE" in key]
    assert keys == ["optimizer/accumulators/0/.ATTRIBUTES/VARIABLE_VALUE"]


def test_optimizers_are_made_by_name() -> None:
    kinds = {name: type(make_optimizer(name, [tf.Variable(1.0)])) for name in NAMES}
    assert kinds == {"rmsprop": RMSProp, "momentum": Momentum, "sgd": GradientDescent}


@pytest.mark.parametrize("name", ["adam", "RMSProp", None])
def test_unknown_optimizer_is_refused_with_the_names(name: Any) -> None:
    with pytest.raises(OptionError, match="rmsprop, momentum, sgd"):
        make_optimizer(name, [tf.Variable(1.0)])


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
@pytest.mark.parametrize("name", NAMES)
def test_learning_rate_that_is_not_positive_is_refused(name: str, rate: float) -> None:
    with pytest.raises(OptionError, match="learning_rate"):
        make_optimizer(name, [tf.Variable(1.0)]).apply([tf.constant(1.0)], rate)


@pytest.mark.parametrize("name", NAMES)
def test_wrong_number_of_gradients_is_an_error(name: str) -> None:
    with pytest.raises(ValueError, match="shorter"):
        make_optimizer(name, [tf.Variable(1.0), tf.Variable(2.0)]).apply([tf.constant(1.0)], 0.1)


@pytest.mark.parametrize("name", NAMES)
def test_variable_without_a_gradient_is_named(name: str) -> None:
    with pytest.raises(ValueError, match="b:0"):
        make_optimizer(name, [tf.Variable(1.0, name="b")]).apply([None], 0.1)
