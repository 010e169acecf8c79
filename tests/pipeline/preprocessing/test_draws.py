"""Random words of an example against plain Python, eagerly and inside graphs."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from pipeline.preprocessing.draws import example_bits, to_seed, to_uniform


def splitmix(word: int) -> int:
    """SplitMix64's next output after the state `word`."""
    word = (word + 0x9E3779B97F4A7C15) % 2**64
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) % 2**64
    return word ^ (word >> 31)


def words_by_hand(seed: int, example: int, repeat: int, count: int) -> list[int]:
    key = splitmix(splitmix(splitmix(seed) ^ example) ^ repeat)
    return [splitmix((key + 0x9E3779B97F4A7C15 * number) % 2**64) for number in range(1, count + 1)]


def test_splitmix_by_hand_gives_the_published_first_outputs_of_state_zero():
    # The reference program's first outputs for the seed 0.
    states = [(0x9E3779B97F4A7C15 * step) % 2**64 for step in range(3)]
    assert [splitmix(state) for state in states] == [
        0xE220A8397B1DCDAF,
        0x6E789E6AA1B965F4,
        0x06C45D188009454F,
    ]


@pytest.mark.parametrize("seed", [0, 3, 2**31 - 1, 2**63 - 1])
def test_words_equal_plain_python_eagerly_in_a_function_and_in_a_dataset(seed):
    examples = [0, 1, 7, 2**33]

    def draw(example):
        return example_bits(seed, example, tf.zeros([], tf.int64) + 2, 5)

    expected = [words_by_hand(seed, example, 2, 5) for example in examples]
    ids = tf.constant(examples, tf.int64)
    dataset = tf.data.Dataset.from_tensor_slices(ids)
    assert [draw(example).numpy().tolist() for example in ids] == expected
    assert [tf.function(draw)(example).numpy().tolist() for example in ids] == expected
    assert [words.tolist() for words in dataset.map(draw).as_numpy_iterator()] == expected
    assert next(iter(dataset.batch(4).map(draw))).numpy().tolist() == expected


def test_fewer_words_are_a_prefix_of_more():
    zero = tf.zeros([], tf.int64)
    np.testing.assert_array_equal(example_bits(1, zero, zero, 3), example_bits(1, zero, zero, 12)[:3])


def test_uniform_numbers_are_the_upper_24_bits_over_two_to_the_24th():
    bits = tf.constant([0, 2**63, 2**64 - 1, 2**40 - 1], tf.uint64)
    np.testing.assert_array_equal(to_uniform(bits), np.float32([0.0, 0.5, 1.0 - 2.0**-24, 0.0]))


def test_a_key_keeps_every_bit_of_its_words():
    assert to_seed(tf.constant([1, 2**64 - 1], tf.uint64)).numpy().tolist() == [1, -1]
