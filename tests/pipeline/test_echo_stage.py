"""The echo as a stage: repeats, its shuffle in blocks, and going on from any output."""

from __future__ import annotations

import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from echoing.echo_factor import EchoFactor
from echoing.errors import OptionError
from pipeline.echo_stage import Echo, EchoOnDevice

FACTOR = EchoFactor.parse(2.5)


def elements(first: int = 0, end: int = 20) -> tf.data.Dataset:
    return tf.data.Dataset.range(first, end).map(
        lambda x: {"example_id": x, "repeat_index": tf.zeros([], tf.int64)}
    )


def pairs(dataset: tf.data.Dataset) -> list[tuple[int, int]]:
    return [(int(e["example_id"]), int(e["repeat_index"])) for e in dataset.as_numpy_iterator()]


@settings(max_examples=10, deadline=None)
@given(
    st.sampled_from(["1", "2", "2.5", "1.3", "7.1"]), st.sampled_from([0, 1, 2, 12, 100]), st.integers(0, 60)
)
def test_deterministic_echo_goes_on_from_any_output(factor, buffer, start):
    options = {"shuffle_buffer_size": buffer, "seed": 3, "deterministic": True}
    whole = Echo(EchoFactor.parse(factor), **options)
    rest = Echo(EchoFactor.parse(factor), **options, start=start)
    first = rest.first_input()
    assert pairs(elements(first, 30).apply(rest)) == pairs(elements(0, 30).apply(whole))[start:]


def test_at_most_a_block_is_made_again():
    # Blocks of 500 outputs are 200 elements at a factor of 2.5.
    stage = Echo(FACTOR, shuffle_buffer_size=1000, deterministic=True, start=10_499)
    assert stage.first_input() == 10_000 / 2.5
    assert Echo(FACTOR, deterministic=True, start=10_499).first_input() == 4199  # 4199 x 2.5 = 10497.5


@pytest.mark.parametrize("buffer", [0, 8])
def test_every_element_is_used_as_often_as_without_blocks(buffer):
    stage = Echo(FACTOR, shuffle_buffer_size=buffer, deterministic=True, seed=1)
    expected = [(n, use) for n in range(20) for use in range(2 + n % 2)]
    assert sorted(pairs(elements().apply(stage))) == expected
    assert int(elements().apply(stage).cardinality()) == 50


def test_deterministic_echo_of_endless_data_is_endless():
    stage = Echo(FACTOR, shuffle_buffer_size=8, deterministic=True)
    assert int(elements().repeat().apply(stage).cardinality()) == tf.data.INFINITE_CARDINALITY


def test_without_determinism_the_start_leaves_out_what_came_before():
    stage = Echo(FACTOR, shuffle_buffer_size=10, seed=1, start=6)
    assert stage.first_input() == 2  # outputs 0 to 4 are uses of 0 and 1, outputs 5 and 6 of 2
    rest = pairs(elements(2).apply(stage))
    whole = [(n, use) for n in range(20) for use in range(2 + n % 2)]
    assert sorted(rest) == whole[6:]


def test_buffer_in_bytes_gives_the_same_blocks_as_one_in_elements():
    # Two int64 are 16 bytes. 20 elements, mean and allowance, leave 10 places (see `echoing.shuffle_budget`).
    in_bytes = Echo(EchoFactor.parse(1), shuffle_buffer_bytes=160, seed=1, deterministic=True, start=7)
    in_elements = Echo(EchoFactor.parse(1), shuffle_buffer_size=10, seed=1, deterministic=True, start=7)
    first = in_bytes.first_input(elements().element_spec)
    assert first == in_elements.first_input() == 5
    assert pairs(elements(5).apply(in_bytes)) == pairs(elements(5).apply(in_elements))


def test_variable_factor_has_no_start_but_shuffles_in_blocks():
    factor = tf.Variable(2.0)
    shuffled = Echo(factor, shuffle_buffer_size=8, deterministic=True, seed=1)
    assert sorted(pairs(elements().apply(shuffled))) == [(n, use) for n in range(20) for use in range(2)]
    assert shuffled.first_input() == 0
    with pytest.raises(OptionError, match="start is 3"):
        Echo(factor, start=3).first_input()


def test_uses_on_the_device_go_on_at_their_fraction():
    def uses(first: int) -> list[int]:
        stage = EchoOnDevice(EchoFactor.parse("1.25"), start=first)
        return [int(batch["device_uses"]) for batch in elements(first, 9).apply(stage)]

    assert uses(0) == [1, 1, 1, 2, 1, 1, 1, 2, 1]
    assert [uses(first) for first in range(9)] == [uses(0)[first:] for first in range(9)]
