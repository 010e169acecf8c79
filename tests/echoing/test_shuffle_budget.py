"""Shuffle buffers by bytes: the formula against simulations and against the shuffle of tf.data."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from echoing.echo_operator import echo
from echoing.errors import OptionError
from echoing.shuffle_budget import element_bytes_of, elements_for_budget, mean_different_elements


def different_held(inputs, outputs, places):
    """Returns the number of different elements in the full buffer before each output, from the streams alone.

    Before the t-th output, t >= 1, `places` - 1 + t elements have come in.
    """
    held = np.bincount(inputs[: places - 1], minlength=inputs.max() + 1)
    different = int(np.count_nonzero(held))
    counts = []
    for output, entering in zip(outputs, inputs[places - 1 :], strict=False):
        different += held[entering] == 0
        held[entering] += 1
        counts.append(different)
        held[output] -= 1
        different -= held[output] == 0
    return np.array(counts)


def echoed(elements, factor):
    uses = np.diff(np.floor(np.arange(elements + 1) * factor + 1e-9).astype(int))
    return np.repeat(np.arange(elements), uses)


def simulated_counts(factor, places, seed):
    inputs = echoed(int((25 * places + 6000) / factor), factor)
    generator = np.random.default_rng(seed)
    buffer = inputs[:places].copy()
    outputs = []
    for entering, place in zip(
        inputs[places:], generator.integers(0, places, inputs.size - places), strict=True
    ):
        outputs.append(buffer[place])
        buffer[place] = entering
    return different_held(inputs, np.array(outputs), places)


# --- the formula -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("factor", "expected"), [(1, 600), (2, 450), (3, 600 * 11 / 18), (1.5, 500), (4, 600 * 25 / 48)]
)
def test_mean_is_the_harmonic_number_over_the_factor(factor, expected):
    assert mean_different_elements(600, factor) == pytest.approx(expected, rel=1e-12)


def test_harmonic_number_is_continuous_where_its_expansion_begins():
    exact = math.fsum(1 / number for number in range(1, 1001)) / 1000
    assert mean_different_elements(1, 1000) == pytest.approx(exact, rel=1e-13)


@pytest.mark.parametrize("factor", [1.5, 2, 4.25, 8])
@pytest.mark.parametrize("places", [20, 200])
def test_simulated_shuffle_holds_the_mean_and_stays_within_the_allowance(factor, places):
    counts = simulated_counts(factor, places, seed=1)[3 * places :]
    mean = mean_different_elements(places, factor)
    # Four standard errors, with a correlation time of S outputs.
    error = 4 * 0.4 * math.sqrt(mean * 2 * places / counts.size)
    assert mean - error <= counts.mean() <= mean + 0.6 + error
    assert counts.std() <= 0.45 * math.sqrt(mean)
    assert counts.max() <= mean + 3 * math.sqrt(mean) + 1


@pytest.mark.parametrize("factor", [1.5, 4])
def test_shuffle_of_tf_data_holds_the_mean_and_stays_within_the_budget(factor):
    budget_bytes, element_bytes = 60_000, 1000
    places = elements_for_budget(budget_bytes, element_bytes, factor)
    assert places > 60 / 1.01 if factor == 1.5 else places > 70
    dataset = tf.data.Dataset.range(3000).apply(echo(factor, shuffle_buffer_size=places, seed=3))
    outputs = np.fromiter(dataset.as_numpy_iterator(), np.int64)
    counts = different_held(echoed(3000, factor), outputs, places)
    assert counts.max() * element_bytes <= budget_bytes
    assert counts[3 * places :].mean() == pytest.approx(mean_different_elements(places, factor), rel=0.05)


# --- elements for a budget ---------------------------------------------------------------------------------


def test_without_echo_the_budget_is_divided_by_the_element():
    assert elements_for_budget(1000, 299, 1) == 3


def test_echo_makes_room_for_more_places_than_different_elements():
    # 10,000 different elements: m + 3 sqrt(m) + 1 = 10,000 at m = 9703.5, times 4 / H(4) = 1.92.
    assert elements_for_budget(10_000 * 268_203, 268_203, 4) == 18_630


def test_strict_budget_holds_without_any_sharing():
    assert elements_for_budget(10_000, 1, 4, strict=True) == 10_000


@settings(deadline=None)
@given(
    different=st.integers(1, 10**6),
    element_bytes=st.integers(1, 10**6),
    factor=st.decimals(1, 50, places=6).map(float),
    data=st.data(),
)
def test_more_budget_never_gives_fewer_places_and_the_mean_always_fits(
    different, element_bytes, factor, data
):
    try:
        places = elements_for_budget(different * element_bytes, element_bytes, factor)
    except OptionError:
        assert different < factor
        return
    assert places >= max(different, factor)
    assert min(places, mean_different_elements(places, factor)) <= different
    more = data.draw(st.integers(different, 2 * 10**6))
    assert elements_for_budget(more * element_bytes, element_bytes, factor) >= places


@settings(deadline=None, max_examples=30)
@given(factor=st.floats(1, 40), budget=st.integers(2, 24), seed=st.integers(0, 99))
def test_simulated_shuffle_stays_within_a_small_budget(factor, budget, seed):
    try:
        places = elements_for_budget(budget, 1, factor)
    except OptionError:
        return
    if places < 200:
        assert simulated_counts(factor, places, seed).max() <= budget


# --- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [-1, 0, math.nan, math.inf, "1 GB"])
def test_budget_that_is_no_positive_number_is_refused(budget):
    with pytest.raises(OptionError, match="shuffle_buffer_bytes is"):
        elements_for_budget(budget, 10, 2)


@pytest.mark.parametrize("element_bytes", [-1, 0, math.nan])
def test_element_size_that_is_no_positive_number_is_refused(element_bytes):
    with pytest.raises(OptionError, match="element_bytes is"):
        elements_for_budget(100, element_bytes, 2)


@pytest.mark.parametrize("factor", [0.5, math.nan, math.inf])
def test_factor_that_is_none_is_refused(factor):
    with pytest.raises(OptionError, match="echo_factor is"):
        elements_for_budget(100, 1, factor)


def test_budget_below_one_element_is_refused_with_the_element_size():
    with pytest.raises(OptionError, match="is 268202, but must be at least one element of 268,203 bytes"):
        elements_for_budget(268_202, 268_203, 1)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("factor", [2, 3.5, 7, 100, 1000])
def test_factor_too_large_for_the_budget_is_refused_and_the_advised_budget_is_the_least(factor, strict):
    with pytest.raises(
        OptionError, match=f"for an echo factor of {factor:g}.*lower the echo factor"
    ) as error:
        elements_for_budget(1500, 1000, factor, strict=strict)
    advised = int(str(error.value).split("at least ")[1].split(" ")[0].replace(",", ""))
    assert elements_for_budget(advised, 1000, factor, strict=strict) >= factor
    with pytest.raises(OptionError):
        elements_for_budget(advised - 1, 1000, factor, strict=strict)


# --- element sizes -----------------------------------------------------------------------------------------


def test_size_of_known_components_is_added_up_through_any_structure():
    spec = {
        "image": tf.TensorSpec([299, 299, 3], tf.uint8),
        "pair": (tf.TensorSpec([], tf.int64), [tf.TensorSpec([2, 3], tf.bfloat16)]),
    }
    assert element_bytes_of(spec) == 299 * 299 * 3 + 8 + 12


def test_size_that_is_not_known_is_taken_from_the_user():
    spec = {
        "serialized": tf.TensorSpec([], tf.string),
        "nested": (tf.TensorSpec([None, 4], tf.float32), tf.RaggedTensorSpec([2, None], tf.int32)),
        "label": tf.TensorSpec([], tf.int32),
    }
    sizes = {"serialized": 110_000, "nested/0": 32.5, "nested/1": 0}
    assert element_bytes_of(spec, sizes) == 110_036.5


@pytest.mark.parametrize(
    "spec",
    [
        tf.TensorSpec([], tf.string),
        tf.TensorSpec([None, None, 3], tf.uint8),
        tf.TensorSpec(None, tf.uint8),
        tf.RaggedTensorSpec([2, None], tf.int32),
        tf.SparseTensorSpec([10, 10], tf.float32),
        tf.data.DatasetSpec(tf.TensorSpec([], tf.int64)),
    ],
)
def test_missing_size_is_an_error_that_names_the_component(spec):
    with pytest.raises(OptionError, match=r"mean size of 'element' in bytes.*does not tell it"):
        element_bytes_of(spec)
    assert element_bytes_of(spec, {"element": 5}) == 5


def test_size_for_a_component_that_needs_none_is_refused():
    spec = {"label": tf.TensorSpec([], tf.int32)}
    with pytest.raises(OptionError, match=r"Leave out 'label', 'lable'"):
        element_bytes_of(spec, {"label": 3, "lable": 4})


def test_negative_size_is_refused():
    with pytest.raises(OptionError, match=r"component_bytes\['element'\] is -1"):
        element_bytes_of(tf.TensorSpec([], tf.string), {"element": -1})
