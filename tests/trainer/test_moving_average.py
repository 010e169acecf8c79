from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from echoing.errors import OptionError
from trainer.moving_average import MovingAverage, averages_into

VALUES = np.random.default_rng(7).normal(size=(8, 3)).astype(np.float32)
START = [5.0, -5.0, 0.25]


def follow(average: MovingAverage, variable: Any, values: Any = VALUES, count: Any = None) -> list[Any]:
    """Gives the variable one value after the other; returns the average after each."""
    history = []
    for value in values:
        variable.assign(value)
        if count is not None:
            count.assign_add(1)
        average.update()
        history.append(average.average(variable).numpy())
    return history


def debiased(values: np.ndarray[Any, Any], decays: list[float]) -> list[Any]:
    """The filter begun at zero, divided by one less the product of the decays, in float64."""
    biased, left, history = np.zeros(values.shape[1:]), 1.0, []
    for value, decay in zip(values.astype(np.float64), decays, strict=True):
        biased, left = decay * biased + (1 - decay) * value, left * decay
        history.append(biased / (1 - left))
    return history


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.bfloat16])
@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("decay", [0.995, 0.9])
def test_average_has_the_bits_of_tensorflows_own(decay: float, counted: bool, dtype: Any) -> None:
    variable, count = tf.Variable(tf.constant(START, dtype)), tf.Variable(0, dtype=tf.int64)
    average = MovingAverage([variable], decay, count if counted else None)
    oracle = tf.train.ExponentialMovingAverage(decay, count if counted else None)
    # Makes TensorFlow's shadow, with the variable's value.
    oracle.apply([variable])
    for value in VALUES:
        variable.assign(tf.cast(value, dtype))
        count.assign_add(1)
        average.apply()
        oracle.apply([variable])
        assert average.average(variable).dtype == dtype
        assert average.average(variable).numpy().tolist() == oracle.average(variable).numpy().tolist()


def test_average_equals_a_loop_in_numpy() -> None:
    variable = tf.Variable(START)
    shadow, expected = np.array(START), []
    for value in VALUES.astype(np.float64):
        shadow = 0.9 * shadow + 0.1 * value
        expected.append(shadow)
    np.testing.assert_allclose(
        follow(MovingAverage([variable], 0.9), variable), expected, rtol=1e-5, atol=1e-6
    )


def test_count_of_updates_lowers_the_decay_of_early_updates() -> None:
    variable, count = tf.Variable(START), tf.Variable(0, dtype=tf.int64)
    shadow, expected = np.array(START), []
    # (1 + n) / (10 + n) for n = 1 to 8; from n = 5 on more than the decay of 0.3.
    for value, decay in zip(
        VALUES.astype(np.float64), [2 / 11, 3 / 12, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3], strict=True
    ):
        shadow = decay * shadow + (1 - decay) * value
        expected.append(shadow)
    average = MovingAverage([variable], 0.3, count)
    np.testing.assert_allclose(follow(average, variable, count=count), expected, rtol=1e-5)


def test_decay_may_be_a_variable_that_changes_during_training() -> None:
    variable, decay = tf.Variable(0.0), tf.Variable(0.5)
    average = MovingAverage([variable], decay)
    update = tf.function(average.update, autograph=False)
    variable.assign(8.0)
    update()
    decay.assign(0.75)
    update()
    # 0.5 x 0 + 0.5 x 8 = 4, then 0.75 x 4 + 0.25 x 8 = 5.
    assert average.average(variable).numpy() == 5.0


def test_debiased_average_is_the_filter_from_zero_divided_by_its_weight() -> None:
    variable = tf.Variable(START)
    average = MovingAverage([variable], 0.9, zero_debias=True)
    np.testing.assert_allclose(follow(average, variable), debiased(VALUES, [0.9] * 8), rtol=1e-5, atol=1e-6)
    assert average.variables[-1].numpy() == pytest.approx(1 - 0.9**8, rel=1e-6)


def test_debiased_average_equals_tensorflows_own_for_tensors() -> None:
    with tf.Graph().as_default():
        value = tf.compat.v1.placeholder(tf.float32, [3])
        oracle = tf.compat.v1.train.ExponentialMovingAverage(0.9, zero_debias=True)
        update, shadow = oracle.apply([value]), oracle.average(value)
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            expected = []
            for given_value in VALUES:
                session.run(update, {value: given_value})
                expected.append(session.run(shadow))
    variable = tf.Variable(START)
    average = MovingAverage([variable], 0.9, zero_debias=True)
    np.testing.assert_allclose(follow(average, variable), expected, rtol=1e-5, atol=1e-6)


def test_debiasing_counts_the_decays_that_were_used_and_not_the_updates() -> None:
    variable, count = tf.Variable(START), tf.Variable(0, dtype=tf.int64)
    average = MovingAverage([variable], 0.3, count, zero_debias=True)
    expected = debiased(VALUES, [2 / 11, 3 / 12] + [0.3] * 6)
    np.testing.assert_allclose(follow(average, variable, count=count), expected, rtol=1e-5, atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(-1000, 1000, width=32), min_size=1, max_size=8),
    st.floats(0, 0.9999),
    st.floats(-1000, 1000, width=32),
)
def test_debiased_average_forgets_the_start_and_lies_among_the_values_seen(
    values: list[float], decay: float, start: float
) -> None:
    variable = tf.Variable(start)
    history = follow(MovingAverage([variable], decay, zero_debias=True), variable, values)
    for number, shadow in enumerate(history, start=1):
        assert min(values[:number]) - 1e-3 <= shadow <= max(values[:number]) + 1e-3


def test_debiased_average_of_a_constant_is_the_constant_after_a_thousand_updates() -> None:
    variable = tf.Variable(0.0)
    average = MovingAverage([variable], 0.9999, zero_debias=True)
    update = tf.function(average.update, autograph=False)
    variable.assign(3.0)
    for _ in range(1000):
        update()
    assert average.average(variable).numpy() == 3.0
    assert average.variables[-1].numpy() == pytest.approx(1 - 0.9999**1000, rel=1e-3)


@pytest.mark.parametrize("zero_debias", [False, True])
def test_decay_of_one_keeps_the_start(zero_debias: bool) -> None:
    variable = tf.Variable(START)
    history = follow(MovingAverage([variable], 1.0, zero_debias=zero_debias), variable)
    assert history[-1].tolist() == START


@pytest.mark.parametrize("zero_debias", [False, True])
def test_averages_begin_with_the_variables_values(zero_debias: bool) -> None:
    variable = tf.Variable(START, name="a/weights")
    shadow = MovingAverage([variable], 0.9, zero_debias=zero_debias).average(variable)
    assert (shadow.numpy().tolist(), shadow.name, shadow.trainable) == (
        START,
        "a/weights/MovingAverage:0",
        False,
    )


@pytest.mark.parametrize("jit_compile", [None, True])
@pytest.mark.parametrize("zero_debias", [False, True])
def test_compiled_update_equals_the_eager_one(zero_debias: bool, jit_compile: bool | None) -> None:
    eager, compiled = tf.Variable(START), tf.Variable(START)
    count = tf.Variable(0, dtype=tf.int64)
    average = MovingAverage([eager], 0.9, count, zero_debias)
    other = MovingAverage([compiled], 0.9, count, zero_debias)
    update = tf.function(other.update, autograph=False, jit_compile=jit_compile)
    for value in VALUES:
        count.assign_add(1)
        eager.assign(value)
        compiled.assign(value)
        average.update()
        update()
    np.testing.assert_allclose(other.shadows[0].numpy(), average.shadows[0].numpy(), rtol=1e-6, atol=1e-7)
    assert update.experimental_get_tracing_count() == 1


def trained() -> tuple[list[Any], MovingAverage]:
    """A kernel and a moment of batch norm with their averages, after some steps, all four different."""
    variables = [
        tf.Variable([[1.0, 2.0]], name="weights"),
        tf.Variable([3.0], trainable=False, name="moment"),
    ]
    average = MovingAverage(variables, 0.9, zero_debias=True)
    for step in range(3):
        for variable in variables:
            variable.assign_add(tf.ones_like(variable) * (step + 0.1))
        average.update()
    return variables, average


def numbers(variables: Any) -> list[Any]:
    return [variable.numpy().tolist() for variable in variables]


def test_swap_exchanges_exactly_and_twice_changes_nothing() -> None:
    variables, average = trained()
    values, shadows = numbers(variables), numbers(average.shadows)
    average.swap()
    assert (numbers(variables), numbers(average.shadows)) == (shadows, values)
    average.swap()
    assert (numbers(variables), numbers(average.shadows)) == (values, shadows)


def test_variables_hold_the_averages_inside_the_with_statement_only() -> None:
    variables, average = trained()
    values, shadows = numbers(variables), numbers(average.shadows)
    for _ in range(2):
        with average.swapped():
            assert average.is_swapped
            assert (numbers(variables), numbers(average.shadows)) == (shadows, values)
        assert not average.is_swapped
        assert (numbers(variables), numbers(average.shadows)) == (values, shadows)


def test_variables_come_back_exactly_when_the_evaluation_fails() -> None:
    variables, average = trained()
    values, shadows = numbers(variables), numbers(average.shadows)
    with pytest.raises(KeyboardInterrupt), average.swapped():
        raise KeyboardInterrupt
    assert (numbers(variables), numbers(average.shadows)) == (values, shadows)
    assert not average.is_swapped


def test_averages_count_as_swapped_in_if_the_exchange_itself_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    _, average = trained()

    def fail(strategy: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(average, "_exchange", fail)
    with pytest.raises(MemoryError), average.swapped():
        pass
    assert average.is_swapped


def test_nothing_may_be_swapped_or_averaged_while_the_averages_are_in() -> None:
    variables, average = trained()
    values = numbers(variables)
    with average.swapped():
        with pytest.raises(RuntimeError, match="swapped in already"), average.swapped():
            pass
        with pytest.raises(RuntimeError, match="average them with themselves"):
            average.update()
    assert numbers(variables) == values


def test_training_goes_on_from_a_checkpoint_bit_for_bit(tmp_path: Path) -> None:
    variables, average = trained()
    path = tf.train.Checkpoint(model=variables, average=average).write(str(tmp_path / "checkpoint"))
    other_variables, other = trained()
    for variable in (*other_variables, *other.variables):
        variable.assign(tf.zeros_like(variable))
    tf.train.Checkpoint(model=other_variables, average=other).read(path).assert_consumed()
    assert numbers(other.variables) == numbers(average.variables)
    for one, variable in ((average, variables[0]), (other, other_variables[0])):
        variable.assign([[9.0, -9.0]])
        one.update()
    assert numbers(other.variables) == numbers(average.variables)


def test_checkpoint_of_the_averages_holds_neither_the_variables_nor_the_count(tmp_path: Path) -> None:
    average = MovingAverage([tf.Variable(1.0)], tf.Variable(0.9), tf.Variable(3), zero_debias=True)
    path = tf.train.Checkpoint(average=average).write(str(tmp_path / "checkpoint"))
    keys = {key.split("/.")[0] for key, _ in tf.train.list_variables(path) if "VARIABLE_VALUE" in key}
    assert keys == {"average/shadows/0", "average/weight"}


def test_evaluating_process_restores_the_averages_and_loads_them(tmp_path: Path) -> None:
    variables, average = trained()
    path = tf.train.Checkpoint(model=variables, average=average).write(str(tmp_path / "checkpoint"))
    fresh = [tf.Variable(tf.zeros_like(variable)) for variable in variables]
    other = MovingAverage(fresh, 0.9, zero_debias=True)
    tf.train.Checkpoint(model=fresh, average=other).read(path).assert_consumed()
    assert numbers(fresh) == numbers(variables)
    other.load()
    assert numbers(fresh) == numbers(average.shadows)


def test_evaluating_process_restores_the_averages_straight_into_the_variables(tmp_path: Path) -> None:
    variables, average = trained()
    path = tf.train.Checkpoint(model=variables, average=average).write(str(tmp_path / "checkpoint"))
    fresh = [tf.Variable(tf.zeros_like(variable)) for variable in variables]
    status = tf.train.Checkpoint(average=averages_into(fresh)).read(path).expect_partial()
    status.assert_existing_objects_matched()
    assert numbers(fresh) == numbers(average.shadows)


def test_checkpoint_without_averages_is_noticed(tmp_path: Path) -> None:
    variables, _ = trained()
    path = tf.train.Checkpoint(model=variables).write(str(tmp_path / "checkpoint"))
    status = tf.train.Checkpoint(average=averages_into(variables)).read(path).expect_partial()
    with pytest.raises(AssertionError):
        status.assert_existing_objects_matched()


@pytest.mark.parametrize("decay", [-0.1, 1.1, float("nan"), "0.9", None])
def test_decay_out_of_range_is_refused(decay: Any) -> None:
    with pytest.raises(OptionError, match="moving_average_decay"):
        MovingAverage([tf.Variable(1.0)], decay)


def test_negative_count_is_refused() -> None:
    with pytest.raises(OptionError, match="num_updates"):
        MovingAverage([tf.Variable(1.0)], 0.9, -1)


def test_decay_and_count_that_are_no_scalars_are_refused() -> None:
    with pytest.raises(ValueError, match="moving_average_decay has the shape"):
        MovingAverage([tf.Variable(1.0)], tf.Variable([0.9]))
    with pytest.raises(ValueError, match="num_updates has the shape"):
        MovingAverage([tf.Variable(1.0)], 0.9, tf.constant([1]))


def test_variable_without_an_average_is_named() -> None:
    with pytest.raises(TypeError, match=r"count:0 has the dtype int64"):
        MovingAverage([tf.Variable(1, dtype=tf.int64, name="count")], 0.9)
    with pytest.raises(KeyError, match="other:0"):
        MovingAverage([tf.Variable(1.0)], 0.9).average(tf.Variable(1.0, name="other"))


def test_variable_that_occurs_twice_is_refused() -> None:
    variable = tf.Variable(1.0)
    with pytest.raises(ValueError, match="twice"):
        MovingAverage([variable, variable], 0.9)
