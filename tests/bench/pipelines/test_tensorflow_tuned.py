import io

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from bench.pipelines import tensorflow_crop_decode, tensorflow_tuned
from bench.pipelines.tensorflow_tuned import decode_random_crop, parse_example
from bench.pipelines.variants import Task


@pytest.fixture
def task(small_data):
    return Task(small_data, batch_size=4, image_size=16)


def test_only_the_drawn_crop_is_decoded(monkeypatch, make_record):
    encoded, label = parse_example(tf.constant(make_record(5, label=2, height=64, width=96)))
    assert label.numpy() == 2
    begin, size = tf.constant([8, 16, 0]), tf.constant([40, 33, -1])
    monkeypatch.setattr(tensorflow_tuned, "random_window", lambda shape: (begin, size))
    crop = decode_random_crop(encoded).numpy()
    whole = np.asarray(Image.open(io.BytesIO(encoded.numpy())).convert("RGB"))
    assert crop.shape == (40, 33, 3)
    # The decoders round differently.
    assert np.abs(crop.astype(int) - whole[8:48, 16:49]).mean() < 2.0


def test_tuned_batches_look_like_the_references(task):
    image, label = tensorflow_tuned.dataset(task).element_spec
    assert (image.shape.as_list(), image.dtype) == ([4, 16, 16, 3], tf.float32)
    assert (label.shape.as_list(), label.dtype) == ([4], tf.int32)
    images, labels = next(iter(tensorflow_tuned.dataset(task)))
    assert images.numpy().min() >= -1.0 and images.numpy().max() <= 1.0
    assert set(labels.numpy()) <= {1, 2, 3}


def test_crop_decode_delivers_a_pixel_an_image(task):
    pixels, label = tensorflow_crop_decode.dataset(task).element_spec
    assert (pixels.shape.as_list(), pixels.dtype) == ([4, 3], tf.uint8)
    assert label.shape.as_list() == [4]


@pytest.mark.parametrize("module", [tensorflow_tuned, tensorflow_crop_decode])
def test_batches_go_on_for_ever_and_are_counted(task, module):
    batches = module.open_batches(task)
    assert [next(batches) for _ in range(5)] == [4] * 5
