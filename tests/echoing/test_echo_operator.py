"""Laws of the echo: counts, order, structure, cardinality, shuffling, sharding, checkpoints."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import echoing
from echoing.echo_operator import count_uses, echo
from echoing.errors import OptionError

factors = st.integers(100, 500).map(lambda hundredths: Decimal(hundredths) / 100)


def values(dataset: tf.data.Dataset) -> list[int]:
    return [int(value) for value in dataset.as_numpy_iterator()]


@settings(max_examples=25, deadline=None)
@given(factors, st.integers(0, 40))
def test_every_prefix_of_n_inputs_gives_floor_n_e_outputs_in_order(factor, count):
    result = values(tf.data.Dataset.range(count).apply(echo(float(factor))))
    uses = Counter(result)
    for n in range(count + 1):
        assert sum(uses[i] for i in range(n)) == int(n * factor)
    assert result == sorted(result)
    assert set(uses.values()) <= {math.floor(factor), math.ceil(factor)}


@settings(max_examples=15, deadline=None)
@given(factors, st.integers(1, 30), st.integers(1, 40), st.integers(0, 1000))
def test_shuffled_echo_is_a_permutation_of_the_unshuffled_one(factor, count, buffer, seed):
    dataset = tf.data.Dataset.range(count)
    shuffled = values(dataset.apply(echo(float(factor), shuffle_buffer_size=buffer, seed=seed)))
    assert sorted(shuffled) == values(dataset.apply(echo(float(factor))))


@pytest.mark.parametrize("factor", [1, 2, 1.5, 7.1])
def test_cardinality_is_exact_for_a_known_length(factor):
    dataset = tf.data.Dataset.range(10).apply(echo(factor))
    assert int(dataset.cardinality()) == len(values(dataset)) == int(Decimal(str(factor)) * 10)


@pytest.mark.parametrize("factor", [2, 2.5])
def test_infinite_stays_infinite_and_unknown_stays_unknown(factor):
    infinite = tf.data.Dataset.range(3).repeat().apply(echo(factor))
    unknown = tf.data.Dataset.range(3).filter(lambda x: x >= 0).apply(echo(factor))
    assert int(infinite.cardinality()) == tf.data.INFINITE_CARDINALITY
    assert int(unknown.cardinality()) == tf.data.UNKNOWN_CARDINALITY
    assert len(values(unknown)) == int(3 * factor)


@pytest.mark.parametrize("factor", [2, 1.5])
def test_empty_input_stays_empty(factor):
    dataset = tf.data.Dataset.range(0).apply(echo(factor))
    assert values(dataset) == []
    assert int(dataset.cardinality()) == 0


def test_factor_one_returns_the_dataset_itself():
    dataset = tf.data.Dataset.range(3)
    assert dataset.apply(echo(1)) is dataset


def test_echo_of_an_echo_is_the_echo_of_the_product():
    dataset = tf.data.Dataset.range(5)
    assert values(dataset.apply(echo(2)).apply(echo(3))) == values(dataset.apply(echo(6)))


@settings(max_examples=12, deadline=None)
@given(factors, st.integers(0, 60), st.booleans())
def test_start_gives_the_rest_of_the_stream(factor, start, with_repeat_index):
    def stream(first: int, **options) -> list:
        dataset = tf.data.Dataset.range(first, 40)
        echoed = dataset.apply(echo(float(factor), with_repeat_index=with_repeat_index, **options))
        result = list(echoed.as_numpy_iterator())
        assert int(echoed.cardinality()) == len(result)
        return result

    # Output j is the use of the first element n with floor((n + 1) e) > j.
    first = next(n for n in range(61) if int((n + 1) * factor) > start)
    assert stream(min(first, 40), start=start) == stream(0)[start:]


@pytest.mark.parametrize("start", [-1, 0.5])
def test_bad_start_is_refused(start):
    with pytest.raises(OptionError, match="start"):
        echo(2, start=start)
    with pytest.raises(OptionError, match="start"):
        count_uses(2, start=start)


def test_start_of_a_variable_factor_is_refused():
    with pytest.raises(OptionError, match=r"start is 1.*variable"):
        echo(tf.Variable(2.0), start=1)


STRUCTURES = {
    "tensor": tf.data.Dataset.range(2),
    "one-tuple": tf.data.Dataset.range(2).map(lambda x: (x,)),
    "tuple": tf.data.Dataset.range(2).map(lambda x: (x, tf.strings.as_string(x))),
    "dictionary": tf.data.Dataset.range(2).map(lambda x: {"a": x, "b": {"c": (x, x)}}),
    "ragged": tf.data.Dataset.range(2).map(lambda x: tf.RaggedTensor.from_tensor([[x, x]])),
    "sparse": tf.data.Dataset.range(2).map(lambda x: tf.sparse.from_dense([x, 0])),
}


@pytest.mark.parametrize("factor", [2, 1.5])
@pytest.mark.parametrize("name", STRUCTURES)
def test_element_structure_is_kept(name, factor):
    dataset = STRUCTURES[name]
    echoed = dataset.apply(echo(factor))
    tf.nest.assert_same_structure(dataset.element_spec, echoed.element_spec)
    assert len(list(echoed)) == int(2 * factor)


@pytest.mark.parametrize("factor", [2, 2.5])
def test_repeat_index_is_zero_for_the_fresh_use_and_counts_up(factor):
    pairs = list(tf.data.Dataset.range(2).apply(echo(factor, with_repeat_index=True)).as_numpy_iterator())
    expected = {2: [(0, 0), (1, 0), (0, 1), (1, 1)], 2.5: [(0, 0), (1, 0), (0, 1), (1, 1), (2, 1)]}
    assert pairs == expected[factor]


@pytest.mark.parametrize("factor", [1, 2])
def test_empty_input_with_repeat_index_has_the_same_structure_as_a_full_one(factor):
    full = tf.data.Dataset.range(2).apply(echo(factor, with_repeat_index=True))
    empty = tf.data.Dataset.range(0).apply(echo(factor, with_repeat_index=True))
    assert empty.element_spec == full.element_spec
    assert list(empty) == []


def test_copies_share_a_batch_without_shuffle_and_spread_with_one():  # EC-03
    records = tf.data.Dataset.range(8)
    for buffer, least_distinct in ((0, 2), (32, 4), (1000, 4)):
        dataset = records.apply(echo(4, shuffle_buffer_size=buffer, seed=7))
        first = values(dataset.take(8))
        assert len(set(first)) == 2 if buffer == 0 else len(set(first)) >= least_distinct
        assert Counter(values(dataset)) == dict.fromkeys(range(8), 4)


@pytest.mark.parametrize(("drop", "steps"), [(True, 7), (False, 8)])
def test_batches_of_an_echoed_set_have_a_known_length(drop, steps):  # EC-01
    dataset = tf.data.Dataset.range(10).apply(echo(3)).batch(4, drop_remainder=drop)
    assert int(dataset.cardinality()) == steps == len(list(dataset))


def test_same_seed_gives_the_same_stream_and_another_seed_another():
    def stream(seed: int) -> list[int]:
        dataset = tf.data.Dataset.range(50)
        return values(dataset.apply(echo(2, shuffle_buffer_size=30, seed=seed)))

    assert stream(1) == stream(1)
    assert stream(1) != stream(2)


def test_each_iteration_is_shuffled_anew_unless_asked_otherwise():
    dataset = tf.data.Dataset.range(50)
    anew = dataset.apply(echo(2, shuffle_buffer_size=30, seed=1))
    fixed = dataset.apply(echo(2, shuffle_buffer_size=30, seed=1, reshuffle_each_iteration=False))
    assert values(anew) != values(anew)
    assert values(fixed) == values(fixed)


@pytest.mark.parametrize("factor", [2, 2.5])
@pytest.mark.parametrize("buffer", [0, 6])
def test_checkpoint_resumes_at_the_exact_element_from_every_position(factor, buffer, tmp_path):
    def make() -> tf.data.Dataset:  # anew, as a restarted process would
        return tf.data.Dataset.range(6).apply(echo(factor, shuffle_buffer_size=buffer, seed=3))

    whole = values(make())
    for position in range(len(whole)):
        iterator = iter(make())
        for _ in range(position):
            next(iterator)
        path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / str(position)))
        resumed = iter(make())
        tf.train.Checkpoint(iterator=resumed).read(path)
        assert [int(value) for value in resumed] == whole[position:]


def test_works_inside_a_compiled_function():
    dataset = tf.data.Dataset.range(4).apply(echo(2.5))

    @tf.function
    def total() -> tf.Tensor:
        result = tf.zeros([], tf.int64)
        for value in dataset:
            result += value
        return result

    assert int(total()) == 0 * 2 + 1 * 3 + 2 * 2 + 3 * 3


@pytest.mark.parametrize(("factor", "uses"), [(3, [3] * 10), (1.5, [1, 2] * 5)])
@pytest.mark.parametrize("processing_mode", ["parallel_epochs", "distributed_epoch"])
def test_works_behind_the_tf_data_service(processing_mode, factor, uses):
    dispatcher = tf.data.experimental.service.DispatchServer()
    address = dispatcher.target.split("://")[1]
    worker = tf.data.experimental.service.WorkerServer(
        tf.data.experimental.service.WorkerConfig(dispatcher_address=address)
    )
    dataset = tf.data.Dataset.range(10).apply(echo(factor))
    served = dataset.apply(tf.data.experimental.service.distribute(processing_mode, dispatcher.target))
    assert Counter(values(served)) == dict(enumerate(uses))
    del worker


def test_works_in_a_distributed_dataset():
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    dataset = tf.data.Dataset.range(8).apply(echo(1.5)).batch(4)
    batches = list(strategy.experimental_distribute_dataset(dataset))
    assert np.concatenate([batch.numpy() for batch in batches]).tolist() == [
        0,
        1,
        1,
        2,
        3,
        3,
        4,
        5,
        5,
        6,
        7,
        7,
    ]


@pytest.mark.parametrize("factor", [0.5, math.nan, math.inf, 0, -2, "x"])
def test_bad_factor_is_refused_when_the_echo_is_made(factor):
    with pytest.raises(OptionError, match="echo_factor"):
        echo(factor)


@pytest.mark.parametrize("buffer", [-1, 1.5, None])
def test_bad_buffer_is_refused_when_the_echo_is_made(buffer):
    with pytest.raises(OptionError, match="shuffle_buffer_size"):
        echo(2, shuffle_buffer_size=buffer)


def test_package_exports_the_operator():
    assert echoing.echo is echo


@settings(max_examples=15, deadline=None)
@given(factors, st.integers(0, 30))
def test_constant_variable_gives_the_same_stream_as_the_number(factor, count):
    dataset = tf.data.Dataset.range(count)
    variable = tf.Variable(float(factor), dtype=tf.float32)
    assert values(dataset.apply(echo(variable))) == values(dataset.apply(echo(float(factor))))


def test_variable_is_read_while_iterating():
    factor = tf.Variable(1.0)
    uses: Counter[int] = Counter()
    options = (
        tf.data.Options()
    )  # tf.data adds a prefetch of its own otherwise, and a change takes effect behind it
    options.experimental_optimization.inject_prefetch = False
    for element in tf.data.Dataset.range(10).apply(echo(factor)).with_options(options):
        uses[int(element)] += 1
        if int(element) == 4:
            factor.assign(3.0)
    assert [uses[i] for i in range(10)] == [1, 1, 1, 1, 1, 3, 3, 3, 3, 3]


def test_variable_keeps_infinite_input_infinite_and_the_structure():
    dataset = tf.data.Dataset.range(3).map(lambda x: {"a": x}).repeat()
    echoed = dataset.apply(echo(tf.Variable(2.0)))
    assert int(echoed.cardinality()) == tf.data.INFINITE_CARDINALITY
    assert echoed.element_spec == dataset.element_spec


@pytest.mark.parametrize("structure", STRUCTURES)
def test_variable_echoes_any_structure(structure):
    dataset = STRUCTURES[structure]
    echoed = dataset.apply(echo(tf.Variable(1.5)))
    tf.nest.assert_same_structure(dataset.element_spec, echoed.element_spec)
    assert len(list(echoed)) == 3


@pytest.mark.parametrize("later", [1.0, 5.0])
def test_checkpoint_resumes_within_repeats_although_the_variable_changed(later, tmp_path):
    def make(factor: tf.Variable) -> tf.data.Dataset:
        return tf.data.Dataset.range(5).apply(echo(factor))

    whole = values(make(tf.Variable(3.0)))
    for position in range(len(whole)):
        saved = tf.Variable(3.0)
        iterator = iter(make(saved))
        for _ in range(position):
            next(iterator)
        path = tf.train.Checkpoint(iterator=iterator, factor=saved).write(str(tmp_path / str(position)))
        restored = tf.Variable(later)
        resumed = iter(make(restored))
        tf.train.Checkpoint(iterator=resumed, factor=restored).read(path)
        assert [int(value) for value in resumed] == whole[position:]


@pytest.mark.parametrize("value", [0.5, math.nan, math.inf, -1.0, 2e13])
def test_variable_below_one_or_not_finite_is_an_error_while_iterating(value):
    with pytest.raises(tf.errors.InvalidArgumentError, match="echo factor must be a number >= 1"):
        list(tf.data.Dataset.range(2).apply(echo(tf.Variable(value))))


@settings(max_examples=10, deadline=None)
@given(factors, st.integers(0, 30))
def test_counted_uses_are_those_of_the_echo(factor, count):
    dataset = tf.data.Dataset.range(count)
    for given_factor in (float(factor), tf.Variable(float(factor))):
        counted = list(dataset.apply(count_uses(given_factor)).as_numpy_iterator())
        spread = [int(element) for uses, element in counted for _ in range(uses)]
        assert spread == values(dataset.apply(echo(float(factor))))


def test_counting_keeps_the_length_and_the_structure():
    dataset = tf.data.Dataset.range(3).map(lambda x: (x, {"a": x})).apply(count_uses(1.5))
    assert int(dataset.cardinality()) == 3
    assert [(int(uses), int(x)) for uses, (x, _) in dataset] == [(1, 0), (2, 1), (1, 2)]


def test_buffer_in_bytes_becomes_as_many_elements_as_the_budget_holds():
    # 400 bytes an element: 100 of them. Behind an echo of 4, 140 places hold 100 different ones (see
    # `echoing.shuffle_budget`), so the first 140 outputs are drawn from the first 35 elements and a few more.
    dataset = tf.data.Dataset.range(1000).map(lambda x: tf.fill([100], tf.cast(x, tf.int32)))
    by_bytes = dataset.apply(echo(4, shuffle_buffer_bytes=40_000, seed=5))
    by_size = dataset.apply(echo(4, shuffle_buffer_size=140, seed=5))
    for ours, other in zip(by_bytes.take(300), by_size.take(300), strict=True):
        np.testing.assert_array_equal(ours, other)


def test_buffer_in_bytes_for_batches():
    batches = tf.data.Dataset.range(100).batch(10, drop_remainder=True)  # 80 bytes each
    echoed = batches.apply(echo(2, shuffle_buffer_bytes=800, seed=1))
    assert Counter(tuple(batch.tolist()) for batch in echoed.as_numpy_iterator()) == {
        tuple(range(first, first + 10)): 2 for first in range(0, 100, 10)
    }


@pytest.mark.parametrize(
    "options",
    [
        {"shuffle_buffer_bytes": 0},
        {"shuffle_buffer_bytes": 1.5},
        {"shuffle_buffer_bytes": 100, "shuffle_buffer_size": 5},
    ],
)
def test_bad_byte_budget_is_refused_when_the_echo_is_made(options):
    with pytest.raises(OptionError, match="shuffle_buffer"):
        echo(2, **options)


def test_byte_budget_needs_elements_of_known_size():
    with pytest.raises(OptionError, match="size"):
        tf.data.Dataset.from_tensors("text").apply(echo(2, shuffle_buffer_bytes=100))
    with pytest.raises(OptionError, match="at least one element"):
        tf.data.Dataset.range(5).apply(echo(2, shuffle_buffer_bytes=7))


@pytest.mark.parametrize("name", echoing.__all__)
def test_every_public_name_is_there(name):
    assert getattr(echoing, name).__name__ == name
