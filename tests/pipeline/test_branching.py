"""A choice inside a graph: the result of the branch taken, and nothing of the other."""

from __future__ import annotations

import pytest
import tensorflow as tf

from pipeline.branching import either, rare_operation


def parse(text):
    """Fails where the text is no number."""
    return tf.strings.to_number(text, tf.int32)


def choose(text):
    return either(tf.strings.length(text) < 3, text, parse, lambda long: parse(tf.strings.substr(long, 0, 1)))


@pytest.mark.parametrize(("text", "expected"), [(b"17", 17), (b"8xx", 8)])
def test_only_the_branch_taken_is_computed(text, expected):
    # The other branch would fail on "8xx".
    assert int(choose(tf.constant(text))) == expected
    assert int(tf.function(choose)(tf.constant(text))) == expected
    assert [int(number) for number in tf.data.Dataset.from_tensors(text).map(choose)] == [expected]


def test_an_error_of_the_branch_taken_is_raised():
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.function(choose)(tf.constant(b"x"))


def test_a_rare_operation_gives_the_same_in_either_branch_and_alone():
    rare = rare_operation(parse)
    assert int(rare(tf.constant(b"5"))) == 5

    def one(text):
        return either(tf.strings.length(text) > 1, text, rare, lambda short: rare(short) + 100)

    numbers = tf.data.Dataset.from_tensor_slices([b"4", b"44"]).map(one)
    assert [int(number) for number in numbers] == [104, 44]
