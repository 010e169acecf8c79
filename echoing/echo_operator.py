"""The echo: a dataset transformation that uses each element several times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from echoing.cardinality import declare_length
from echoing.checks import check_integer
from echoing.echo_factor import MAX_FACTOR, EchoFactor
from echoing.errors import OptionError
from echoing.shuffle_budget import element_bytes_of, elements_for_budget

VARIABLE_FACTOR_UNIT = 10**6
"""A factor that is a variable counts in millionths: exact for six decimals, whatever the variable's type."""


def echo(
    factor: object,
    *,
    shuffle_buffer_size: int = 0,
    shuffle_buffer_bytes: int | None = None,
    seed: int | None = None,
    reshuffle_each_iteration: bool = True,
    with_repeat_index: bool = False,
    start: int = 0,
) -> Callable[[tf.data.Dataset], tf.data.Dataset]:
    """Returns a transformation that uses each element `factor` times: `dataset.apply(echo(2))`.

    Length: n elements become floor(n e); the cardinality says so where the input's is known, and an infinite
    input stays infinite. A factor of 1 adds no echo, unless the repeat index is asked for.

    Order: the uses of one element follow each other, and elements keep their order, until the shuffle
    buffer, which stands after the echo as in Choi et al. (2019), arXiv 1907.05550, section 2. For a
    fractional factor the uses are spread evenly: after any n inputs exactly floor(n e) outputs have left.
    Without a shuffle, repeats land side by side in one batch.

    Determinism: everything but the shuffle is deterministic; with a `seed` the shuffle is too.

    Memory: the uses of one element share one buffer, nothing is copied.

    The element may have any structure (tensors, tuples, dictionaries, ragged, sparse). With a number as the
    factor the transformation has no state outside the iterator, so it can be checkpointed, sharded and
    shipped to the tf.data service.

    A `tf.Variable` as the factor is read for every element, at the moment when its number of uses is decided,
    so that the echo changes while the iterator runs. What lies in buffers behind it keeps the factor of its
    time. The number of uses travels with the element: a checkpoint within the repeats of one element resumes
    exactly, also when the variable has changed. The length is then unknown, and as a variable belongs to one
    process the dataset cannot be shipped to the tf.data service. tf.data asks to be told what to do about
    such state in checkpoints: the transformation sets the policy to WARN; save the variable beside the
    iterator.

    Args:
        factor: how often each element is used, e >= 1: a number, or a scalar float `tf.Variable`. A float
            counts as the decimal that it prints as.
        shuffle_buffer_size: elements in the shuffle buffer after the echo; 0 leaves the shuffle out.
        shuffle_buffer_bytes: memory of that buffer, in place of its size, for elements whose size is known
            from their specification. The uses of one element share its memory; see
            `echoing.shuffle_budget`. A variable factor counts as 1, its smallest value.
        seed: seed of the shuffle; None draws one.
        reshuffle_each_iteration: whether each pass over the dataset is shuffled differently.
        with_repeat_index: whether elements become `(repeat_index, element)`; the index is a scalar int64,
            0 for the fresh use, 1 and up for its repeats.
        start: outputs that come before the first one, to go on in the middle of an echo, also within the
            repeats of an element. The input then has to begin with element
            `EchoFactor.parse(factor).element_of(start)` of the whole. Counted before the shuffle, whose state
            no number tells (`echoing.block_shuffle` has one that does). Not with a variable factor, whose
            earlier values are not known.

    Raises:
        OptionError: a factor that is no number >= 1, a negative buffer or start, or a start with a variable
            factor. A variable is checked while iterating: one below 1 or not finite raises
            `tf.errors.InvalidArgumentError`.
    """
    variable = factor if isinstance(factor, tf.Variable) else None
    parsed = EchoFactor.parse(1 if variable is not None else factor)
    check_integer("shuffle_buffer_size", shuffle_buffer_size, minimum=0, advice="0 leaves the shuffle out.")
    if shuffle_buffer_bytes is not None:
        check_integer("shuffle_buffer_bytes", shuffle_buffer_bytes, minimum=1)
        if shuffle_buffer_size:
            raise OptionError("shuffle_buffer_size", shuffle_buffer_size, "0 beside shuffle_buffer_bytes")
    check_integer("start", start, minimum=0)
    if variable is not None and start:
        raise OptionError("start", start, "0 with a variable factor, whose earlier values are not known")

    def transform(dataset: tf.data.Dataset) -> tf.data.Dataset:
        buffer = shuffle_buffer_size
        if shuffle_buffer_bytes is not None:
            buffer = elements_for_budget(shuffle_buffer_bytes, element_bytes_of(dataset.element_spec), parsed)
        if variable is not None:
            dataset = _repeat_by_variable(dataset, variable, with_repeat_index)
        elif not parsed.is_one or with_repeat_index:
            dataset = _repeat_elements(dataset, parsed, with_repeat_index, start)
        if buffer:
            dataset = dataset.shuffle(buffer, seed=seed, reshuffle_each_iteration=reshuffle_each_iteration)
        return dataset

    return transform


def count_uses(factor: object, start: int = 0) -> Callable[[tf.data.Dataset], tf.data.Dataset]:
    """Returns a transformation to `(uses, element)` pairs: how often each element is to be used.

    This is the decision of `echo` without its execution, for a consumer that repeats by itself, such as a
    device that holds a batch in its memory. Length and order stay as they are; after n elements the uses add
    up to floor(n e).

    Args:
        factor: as for `echo`. The uses are a scalar int64.
        start: elements that come before the first one, to go on in the middle. A variable factor counts
            afresh from there: its fraction carried over is not known.

    Raises:
        OptionError: a factor that is no number >= 1, or a negative start.
    """
    check_integer("start", start, minimum=0)
    if isinstance(factor, tf.Variable):
        return lambda dataset: _with_options(_count_by_variable(dataset, factor))
    parsed = EchoFactor.parse(factor)
    return lambda dataset: dataset.enumerate(start).map(
        lambda index, element: (_uses_of_element(index, parsed), element)
    )


def _repeat_elements(
    dataset: tf.data.Dataset, factor: EchoFactor, with_repeat_index: bool, start: int
) -> tf.data.Dataset:
    first = factor.element_of(start)
    length = int(dataset.cardinality())
    if length == 0:
        # Nothing to echo, but the element structure must be the one that was asked for.
        return dataset.enumerate() if with_repeat_index else dataset

    if factor.is_integer:
        # A tuple element arrives as separate arguments, anything else as one.
        is_tuple = type(dataset.element_spec) is tuple
        echoed = dataset.flat_map(
            lambda *args: _uses(factor.whole, args if is_tuple else args[0], with_repeat_index)
        )
    else:
        counted = dataset.apply(count_uses(factor, first))
        echoed = counted.flat_map(lambda count, element: _uses(count, element, with_repeat_index))
    before = factor.outputs_of(first)
    if length > 0:
        length = factor.outputs_of(first + length) - before
    echoed = declare_length(echoed, length)
    return echoed.skip(start - before) if start > before else echoed


def _repeat_by_variable(
    dataset: tf.data.Dataset, factor: tf.Variable, with_repeat_index: bool
) -> tf.data.Dataset:
    counted = _count_by_variable(dataset, factor)
    echoed = counted.flat_map(lambda count, element: _uses(count, element, with_repeat_index))
    if int(dataset.cardinality()) == tf.data.INFINITE_CARDINALITY:
        echoed = declare_length(echoed, tf.data.INFINITE_CARDINALITY)
    return _with_options(echoed)


def _count_by_variable(dataset: tf.data.Dataset, factor: tf.Variable) -> tf.data.Dataset:
    unit = tf.constant(VARIABLE_FACTOR_UNIT, tf.int64)

    def count(credit: Any, element: Any) -> tuple[Any, Any]:
        value = tf.cast(factor.read_value(), tf.float64)
        valid = tf.debugging.Assert(
            (value >= 1) & (value <= MAX_FACTOR),  # also false for NaN
            [f"The echo factor must be a number >= 1 and <= {MAX_FACTOR}, but is", value],
        )
        with tf.control_dependencies([valid]):
            credit += tf.cast(tf.round(value * VARIABLE_FACTOR_UNIT), tf.int64)
        return credit % unit, (credit // unit, element)

    return dataset.scan(tf.zeros([], tf.int64), count)


def _with_options(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Lets the iterator be checkpointed although it reads a variable."""
    options = tf.data.Options()
    options.experimental_external_state_policy = tf.data.experimental.ExternalStatePolicy.WARN
    return dataset.with_options(options)


def _uses(count: Any, element: Any, with_repeat_index: bool) -> tf.data.Dataset:
    """Returns the uses of one element as a dataset."""
    repeated = tf.data.Dataset.from_tensors(element).repeat(count)
    if not with_repeat_index:
        return repeated
    # Not `enumerate`, which takes almost a millisecond to start here, for every element.
    return tf.data.Dataset.zip((tf.data.Dataset.range(count), repeated))


def _uses_of_element(index: Any, factor: EchoFactor) -> Any:
    """Returns floor((index + 1) e) - floor(index e), int64, without overflow for any index."""
    numerator = tf.constant(factor.remainder.numerator, tf.int64)
    denominator = tf.constant(factor.remainder.denominator, tf.int64)
    position = tf.math.floormod(index, denominator)
    extra = (position + 1) * numerator // denominator - position * numerator // denominator
    return tf.constant(factor.whole, tf.int64) + extra
