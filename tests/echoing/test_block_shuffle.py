"""The shuffle in blocks: permutations, going on in the middle, what is held."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from echoing.block_shuffle import block_size_for, shuffle_in_blocks

KEY = tf.constant([7, 1], tf.int64)


def values(dataset: tf.data.Dataset) -> list[int]:
    return [int(value) for value in dataset.as_numpy_iterator()]


def blocks_of(stream: list[int], size: int) -> list[list[int]]:
    return [stream[first : first + size] for first in range(0, len(stream), size)]


def test_every_block_is_a_permutation_of_itself_also_a_smaller_last_one():
    stream = values(tf.data.Dataset.range(23).apply(shuffle_in_blocks(10, KEY)))
    assert [sorted(block) for block in blocks_of(stream, 10)] == [
        list(range(10)),
        list(range(10, 20)),
        [20, 21, 22],
    ]
    assert stream != list(range(23))


def test_all_permutations_of_a_block_are_about_equally_frequent():
    stream = values(tf.data.Dataset.range(1800).apply(shuffle_in_blocks(3, KEY)))
    orders = Counter(tuple(value % 3 for value in block) for block in blocks_of(stream, 3))
    assert set(orders) == set(itertools.permutations(range(3)))
    assert all(60 < count < 140 for count in orders.values())  # 100 expected, standard deviation 9


def test_order_depends_on_the_key_alone():
    def stream(key: list[int]) -> list[int]:
        return values(tf.data.Dataset.range(20).apply(shuffle_in_blocks(20, tf.constant(key, tf.int64))))

    assert stream([1, 2]) == stream([1, 2])
    assert len({tuple(stream(key)) for key in ([1, 2], [1, 3], [2, 2])}) == 3


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 9), st.integers(0, 40))
def test_goes_on_from_any_element_with_one_block_read_again(size, start):
    whole = values(tf.data.Dataset.range(40).apply(shuffle_in_blocks(size, KEY)))
    block, served = divmod(start, size)
    rest = tf.data.Dataset.range(block * size, 40).apply(shuffle_in_blocks(size, KEY, block)).skip(served)
    assert values(rest) == whole[start:]


def test_two_blocks_are_held_and_no_more():
    pulled = tf.Variable(0, dtype=tf.int64)

    def note(value: tf.Tensor) -> tf.Tensor:
        with tf.control_dependencies([pulled.assign_add(1)]):
            return tf.identity(value)

    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False  # tf.data's own, which holds elements as well
    dataset = tf.data.Dataset.range(100).map(note).apply(shuffle_in_blocks(10, KEY)).with_options(options)
    for served, _ in enumerate(dataset.take(50)):
        assert int(pulled) <= (served // 10 + 2) * 10


STRUCTURES = {
    "tensor": tf.data.Dataset.range(5),
    "one-tuple": tf.data.Dataset.range(5).map(lambda x: (x,)),
    "dictionary": tf.data.Dataset.range(5).map(lambda x: {"a": x, "b": {"c": (x, tf.strings.as_string(x))}}),
    "any size": tf.data.Dataset.range(5).map(lambda x: tf.range(x)),
    "ragged": tf.data.Dataset.range(5).map(lambda x: tf.RaggedTensor.from_tensor([[x, x]])),
    "sparse": tf.data.Dataset.range(5).map(lambda x: tf.sparse.from_dense([x, 0])),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_element_structure_is_kept(name):
    dataset = STRUCTURES[name]
    shuffled = dataset.apply(shuffle_in_blocks(3, KEY))
    tf.nest.assert_same_structure(dataset.element_spec, shuffled.element_spec)
    assert len(list(shuffled)) == 5


@pytest.mark.parametrize(("buffer", "block"), [(0, 0), (1, 1), (2, 2), (3, 2), (4, 2), (7, 3), (1000, 500)])
def test_a_buffer_holds_two_blocks(buffer, block):
    assert block_size_for(buffer) == block


def test_checkpoint_of_the_iterator_resumes_exactly(tmp_path):
    def make() -> tf.data.Dataset:
        return tf.data.Dataset.range(20).apply(shuffle_in_blocks(6, KEY))

    whole = values(make())
    iterator = iter(make())
    for _ in range(8):
        next(iterator)
    path = tf.train.Checkpoint(iterator=iterator).write(str(tmp_path / "iterator"))
    resumed = iter(make())
    tf.train.Checkpoint(iterator=resumed).read(path)
    assert [int(value) for value in resumed] == whole[8:]
