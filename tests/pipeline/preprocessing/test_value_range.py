"""Pictures as -1 to 1 and as grey levels."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from pipeline.preprocessing.value_range import to_dtype


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
def test_the_wanted_type_is_left_alone(dtype):
    image = tf.zeros([2, 2, 3], tf.dtypes.as_dtype(dtype))
    assert to_dtype(image, dtype) is image


def test_grey_levels_are_rounded_and_kept_in_their_range(both_ways):
    values = np.float32([-1.2, -1.0, -0.9961, 0.0, 0.2, 0.9961, 1.0, 1.3])
    result = both_ways(lambda image: to_dtype(image, "uint8"), values)
    assert result.dtype == np.uint8
    # 0.0 is 127.5: to the even one.
    assert result.tolist() == [0, 0, 0, 128, 153, 255, 255, 255]


def test_grey_levels_become_minus_one_to_one(both_ways):
    result = both_ways(lambda image: to_dtype(image, "float32"), np.uint8([0, 51, 255]))
    np.testing.assert_allclose(result, [-1.0, -0.6, 1.0], atol=1e-6)


def test_every_grey_level_survives_the_way_there_and_back():
    levels = tf.constant(np.arange(256, dtype=np.uint8))
    np.testing.assert_array_equal(to_dtype(to_dtype(levels, "float32"), "uint8"), levels)


def test_bfloat16_is_a_cast_both_ways():
    image = tf.constant([-1.0, 0.3, 1.0])
    assert to_dtype(image, "bfloat16").dtype == tf.bfloat16
    np.testing.assert_allclose(to_dtype(to_dtype(image, "bfloat16"), "float32"), image, atol=2.0**-9)
    assert to_dtype(tf.constant([0, 255], tf.uint8), "bfloat16").dtype == tf.bfloat16
