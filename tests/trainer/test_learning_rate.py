from __future__ import annotations

import itertools
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from echoing.errors import OptionError
from trainer.learning_rate import LearningRateSchedule, scaled_learning_rate

IMAGENET = 1_281_167


def reference(**changes: Any) -> LearningRateSchedule:
    return LearningRateSchedule(**({"batch_size": 1024, "examples_per_epoch": IMAGENET} | changes))


def steps_are_epochs(**changes: Any) -> LearningRateSchedule:
    """A schedule whose epochs are one step long."""
    return LearningRateSchedule(**({"batch_size": 256, "examples_per_epoch": 256} | changes))


def first_step(epoch: int) -> int:
    return math.ceil(epoch * IMAGENET / 1024)


@pytest.mark.parametrize(("batch_size", "rate"), [(256, 0.165), (1024, 0.66), (32, 0.020625)])
def test_rate_is_proportional_to_the_batch(batch_size: int, rate: float) -> None:
    assert scaled_learning_rate(batch_size) == pytest.approx(rate)
    assert reference(batch_size=batch_size).at(0) == pytest.approx(rate)


def test_stairs_of_3753_steps_multiply_the_rate_by_094() -> None:
    schedule = reference()
    assert schedule.decay_steps == 3753
    rates = [schedule.at(step) for step in (0, 3752, 3753, 7505, 7506)]
    np.testing.assert_allclose(rates, [0.66, 0.66, 0.6204, 0.6204, 0.583176], rtol=1e-12)


def test_rate_after_168_epochs_is_that_of_the_reference() -> None:
    assert reference().at(first_step(168)) == pytest.approx(0.0206, abs=5e-5)


def test_rate_falls_no_lower_than_a_ten_thousandth_after_447_epochs() -> None:
    schedule = reference()
    assert schedule.at(first_step(444)) > 0.66e-4
    assert schedule.at(first_step(450)) == pytest.approx(0.66e-4, rel=1e-12)
    assert schedule.at(10**9) == pytest.approx(0.66e-4, rel=1e-12)


WARM_UP = {0: 0.0548, 1: 0.0548, 2: 0.1096, 9: 0.4934, 10: 0.5482, 11: 0.603, 12: 0.5153}
"""Epoch and rate at a batch of 1024, measured on the reference's formula."""


@pytest.mark.parametrize(("epoch", "rate"), WARM_UP.items())
def test_warm_up_has_the_values_of_the_reference_in_the_first_and_last_step_of_an_epoch(
    epoch: int, rate: float
) -> None:
    schedule = reference(warm_up=True)
    first, last = first_step(epoch), first_step(epoch + 1) - 1
    assert (schedule.epoch(first), schedule.epoch(last)) == (epoch, epoch)
    assert schedule.at(first) == pytest.approx(rate, abs=5e-5)
    assert schedule.at(last) == pytest.approx(rate, abs=5e-5)


def test_without_overshoot_only_the_last_epoch_of_the_climb_differs() -> None:
    plain, held = reference(warm_up=True), reference(warm_up=True, overshoot=False)
    different = [e for e in range(20) if plain.at(first_step(e)) != held.at(first_step(e))]
    assert different == [11]
    # 0.66 x 0.94^3
    assert held.at(first_step(11)) == pytest.approx(0.5481854, abs=1e-7)


def test_warm_up_changes_nothing_after_its_climb() -> None:
    plain, warm = reference(), reference(warm_up=True)
    assert plain.at(first_step(12) - 1) != warm.at(first_step(12) - 1)
    steps = range(first_step(12), 40_000, 997)
    assert [plain.at(step) for step in steps] == [warm.at(step) for step in steps]


@pytest.mark.parametrize(("warm_up_epochs", "train_steps"), [(0, 10), (10, 10), (0, 1)])
@pytest.mark.parametrize("overshoot", [True, False])
@pytest.mark.parametrize("decay_epochs", [1, 3])
def test_warm_up_of_nothing_or_of_the_whole_run_gives_rates_within_the_initial_one(
    warm_up_epochs: int, train_steps: int, overshoot: bool, decay_epochs: int
) -> None:
    schedule = steps_are_epochs(
        warm_up=True,
        cold_epochs=0,
        warm_up_epochs=warm_up_epochs,
        train_steps=train_steps,
        overshoot=overshoot,
        decay_epochs=decay_epochs,
    )
    rates = [schedule.at(step) for step in range(train_steps)]
    assert all(0 < rate <= 0.165 for rate in rates)
    assert [float(schedule(tf.constant(step, tf.int64))) for step in range(train_steps)] == pytest.approx(
        rates
    )


def test_no_warm_up_epochs_leave_the_cold_ones_and_the_stairs() -> None:
    schedule = steps_are_epochs(warm_up=True, cold_epochs=2, warm_up_epochs=0, decay=0.5, decay_epochs=2)
    # Cold: a tenth of 0.165 x 0.5^(2 / 2).
    np.testing.assert_allclose(
        [schedule.at(step) for step in range(5)], [0.00825, 0.00825, 0.0825, 0.0825, 0.04125], rtol=1e-12
    )


def test_short_climb_does_not_exceed_the_initial_rate() -> None:
    schedule = steps_are_epochs(warm_up=True, cold_epochs=0, warm_up_epochs=1, decay_epochs=1, decay=1.0)
    assert [schedule.at(step) for step in range(3)] == pytest.approx([0.165, 0.165, 0.165])


def test_warm_up_longer_than_the_run_is_refused_with_the_steps_it_needs() -> None:
    with pytest.raises(OptionError, match=r"train_steps is 10.*>= 12"):
        steps_are_epochs(warm_up=True, cold_epochs=0, warm_up_epochs=12, train_steps=10)


def test_length_of_the_run_does_not_matter_without_warm_up() -> None:
    assert steps_are_epochs(warm_up_epochs=12, train_steps=10).at(0) == pytest.approx(0.165)


def test_step_has_the_same_rate_in_a_run_that_begins_with_it() -> None:
    whole = [steps_are_epochs(warm_up=True, cold_epochs=2, warm_up_epochs=4).at(step) for step in range(12)]
    for stop in (3, 8):
        resumed = steps_are_epochs(warm_up=True, cold_epochs=2, warm_up_epochs=4)
        assert [resumed.at(step) for step in range(stop, 12)] == whole[stop:]


@settings(max_examples=30, deadline=None)
@given(
    batch_size=st.integers(1, 5000),
    batches_per_epoch=st.floats(0.5, 3000),
    decay=st.floats(0.01, 1),
    decay_epochs=st.floats(2, 10),
    cold_epochs=st.integers(0, 5),
    warm_up_epochs=st.integers(0, 10),
    warm_up=st.booleans(),
    overshoot=st.booleans(),
    steps=st.lists(st.integers(0, 10**7), min_size=1, max_size=4),
)
def test_graph_form_equals_the_python_form(
    batch_size: int, batches_per_epoch: float, steps: list[int], **options: Any
) -> None:
    examples = math.ceil(batch_size * batches_per_epoch)
    schedule = LearningRateSchedule(batch_size, examples, **options)
    stairs = [n * schedule.decay_steps + d for n, d in itertools.product((1, 2, 7), (-1, 0, 1))]
    epochs = [math.ceil(e * examples / batch_size) + d for e, d in itertools.product(range(1, 20), (-1, 0))]
    for step in steps + stairs + epochs:
        rate = schedule(tf.constant(step, tf.int64))
        assert (rate.dtype, rate.shape) == (tf.float32, ())
        assert rate.numpy() == np.float32(schedule.at(step))


@pytest.mark.parametrize("jit_compile", [None, True])
def test_compiled_form_equals_the_python_form_over_the_whole_warm_up(jit_compile: bool | None) -> None:
    schedule = reference(warm_up=True, batch_size=16384)
    compiled = tf.function(schedule.__call__, autograph=False, jit_compile=jit_compile)
    steps = range(0, 1400, 7)
    rates = [compiled(tf.constant(step, tf.int64)).numpy() for step in steps]
    assert rates == [np.float32(schedule.at(step)) for step in steps]
    assert compiled.experimental_get_tracing_count() == 1


def test_epochs_stay_exact_beyond_the_steps_that_float32_can_count() -> None:
    # 2^24 + 1 is no float32: the reference's division would place this step an epoch too early.
    schedule = LearningRateSchedule(batch_size=1, examples_per_epoch=2**24 + 1)
    assert [schedule.epoch(2**24), schedule.epoch(2**24 + 1)] == [0, 1]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("batch_size", {"batch_size": 0}),
        ("examples_per_epoch", {"examples_per_epoch": 0}),
        ("learning_rate", {"rate_per_256": 0}),
        ("learning_rate_decay", {"decay": 0}),
        ("learning_rate_decay", {"decay": 1.01}),
        ("learning_rate_decay_epochs", {"decay_epochs": 0}),
        ("learning_rate_decay_epochs", {"decay_epochs": float("nan")}),
        ("cold_epochs", {"cold_epochs": -1}),
        ("cold_epochs", {"cold_epochs": 1.5}),
        ("warmup_epochs", {"warm_up_epochs": -1}),
        ("minimum_share", {"minimum_share": 1.5}),
        ("train_steps", {"train_steps": 0}),
    ],
)
def test_value_that_is_not_allowed_is_refused_by_name(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=f"^{name} is"):
        reference(**options)


def test_stair_shorter_than_a_step_is_refused() -> None:
    with pytest.raises(OptionError, match="at least one step of 1024 of the 300 examples"):
        reference(examples_per_epoch=300)


def test_negative_step_is_refused() -> None:
    with pytest.raises(OptionError, match="step is -1"):
        reference().at(-1)


def test_python_form_needs_no_tensorflow() -> None:
    code = (
        "import sys; from trainer.learning_rate import LearningRateSchedule as S;"
        "S(1024, 1281167).at(5); sys.exit('tensorflow' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
