"""The options of decoding and the shapes of its results; images of every kind are in test_odd_images."""

from __future__ import annotations

import pytest
import tensorflow as tf

from echoing.errors import OptionError
from pipeline.image_decoding import DecodeOptions, claimed_size, decode_image, decode_window, image_size


@pytest.mark.parametrize(
    "changes", [{"dct_method": "FLOAT"}, {"max_pixels": 0}, {"max_pixels": 1.5}, {"max_pixels": None}]
)
def test_an_option_that_is_not_allowed_is_named(changes):
    with pytest.raises(OptionError, match=next(iter(changes))):
        DecodeOptions(**changes)


def test_the_shapes_are_known_to_the_graph_as_far_as_they_can_be():
    @tf.function(input_signature=[tf.TensorSpec([], tf.string), tf.TensorSpec([4], tf.int32)])
    def shapes(encoded, window):
        options = DecodeOptions()
        assert image_size(encoded, options).shape == [2]
        assert claimed_size(encoded).shape == [2]
        assert decode_image(encoded, options).shape.as_list() == [None, None, 3]
        assert decode_window(encoded, window, options).shape.as_list() == [None, None, 3]

    shapes.get_concrete_function()
