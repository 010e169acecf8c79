"""The reference's operations against NumPy, and the distributions of its draws."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from bench.pipelines import tensorflow_reference
from bench.pipelines.tensorflow_reference import (
    dataset,
    distort,
    open_batches,
    random_window,
    records,
    resize,
)
from bench.pipelines.variants import Task

# Of red, green and blue on brightness, cb and cr: ITU-R BT.601.
SHIFTS = np.array([[1.0, 0.0, 1.402], [1.0, -0.344136, -0.714136], [1.0, 1.772, 0.0]])


@pytest.fixture
def task(small_data):
    return Task(small_data, batch_size=4, image_size=16)


def numpy_resize(image, size):
    """Bilinear, the sample of pixel i at i x scale: no half-pixel centres, corners not aligned."""
    result = image.astype(np.float64)
    for axis in (0, 1):
        length = result.shape[axis]
        places = np.arange(size) * (length / size)
        low = np.floor(places).astype(int)
        high = np.minimum(low + 1, length - 1)
        weight = (places - low).reshape([-1 if a == axis else 1 for a in range(3)])
        result = result.take(low, axis) * (1 - weight) + result.take(high, axis) * weight
    return result


@pytest.mark.parametrize("height, width", [(5, 7), (40, 31), (16, 16), (1, 3)])
def test_resize_samples_as_the_reference_does(height, width):
    image = np.random.default_rng(0).random((height, width, 3), np.float32)
    resized = resize(tf.constant(image), 16).numpy()
    assert resized.shape == (16, 16, 3)
    np.testing.assert_allclose(resized, numpy_resize(image, 16), atol=1e-5)


def test_distort_shifts_the_channels_clips_and_scales(monkeypatch):
    brightness, cb, cr = 0.1, -0.05, 0.08
    draws = iter([brightness, cb, cr])
    asked = []

    def uniform(shape, low, high):
        asked.append((shape, low, high))
        return tf.constant(next(draws))

    monkeypatch.setattr(tensorflow_reference.tf.random, "uniform", uniform)
    monkeypatch.setattr(tensorflow_reference.tf.image, "random_flip_left_right", lambda image: image)
    image = np.random.default_rng(1).random((4, 4, 3), np.float32)
    expected = np.clip(image + SHIFTS @ [brightness, cb, cr], 0.0, 1.0) * 2.0 - 1.0
    np.testing.assert_allclose(distort(tf.constant(image), 4).numpy(), expected, atol=1e-6)
    assert asked == [([], -32 / 255, 32 / 255), ([], -0.1, 0.1), ([], -0.1, 0.1)]


def test_draws_have_the_reference_ranges_and_half_of_the_images_are_mirrored():
    tf.random.set_seed(3)
    image = tf.constant([[[0.45] * 3, [0.55] * 3]] * 2)
    drawn = tf.data.Dataset.range(400).map(lambda _: distort(image, 2))
    results = np.stack(list(drawn.as_numpy_iterator()))
    mirrored = results[:, 0, 0, 0] > results[:, 0, 1, 0]
    assert 150 < mirrored.sum() < 250  # five standard deviations of 10 about 200
    shifts = (results.mean(axis=(1, 2)) + 1.0) / 2.0 - 0.5
    draws = shifts @ np.linalg.inv(SHIFTS).T
    for values, limit in zip(draws.T, (32 / 255, 0.1, 0.1), strict=True):
        assert np.abs(values).max() <= limit + 1e-5
        assert values.min() < -0.9 * limit and values.max() > 0.9 * limit


def test_crops_cover_10_to_100_percent_at_3_to_4_up_to_4_to_3():
    tf.random.set_seed(4)
    draws = tf.data.Dataset.range(300).map(lambda _: random_window(tf.constant([400, 600, 3])))
    windows = list(draws.as_numpy_iterator())
    begins = np.stack([begin[:2] for begin, _ in windows])
    sizes = np.stack([size[:2] for _, size in windows])
    assert (begins >= 0).all() and (begins + sizes <= [400, 600]).all()
    shares = sizes.prod(axis=1) / 240_000
    ratios = sizes[:, 1] / sizes[:, 0]
    # 5 % is the least area that is drawn, but 10 % of the image must be covered.
    assert 0.1 <= shares.min() < 0.13 and 0.8 < shares.max() <= 1.0
    assert 0.74 < ratios.min() < 0.8 and 1.27 < ratios.max() < 1.35


def test_batches_are_scaled_images_and_the_labels_of_the_records(task):
    image, label = dataset(task).element_spec
    assert (image.shape.as_list(), image.dtype) == ([4, 16, 16, 3], tf.float32)
    assert (label.shape.as_list(), label.dtype) == ([4], tf.int32)
    images, labels = next(iter(dataset(task)))
    assert images.numpy().min() >= -1.0 and images.numpy().max() <= 1.0
    assert np.ptp(images.numpy()) > 0.2
    assert set(labels.numpy()) <= {1, 2, 3}


def test_batches_go_on_for_ever_and_are_counted(task):
    batches = open_batches(task)
    assert [next(batches) for _ in range(5)] == [4] * 5


@pytest.mark.parametrize("name", ["set [v1]", "a*b"])
def test_folder_names_are_no_patterns_and_compressed_shards_are_read(small_data, tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    plain, compressed = sorted(Path(small_data).glob("train-*"))
    (folder / plain.name).write_bytes(plain.read_bytes())
    (folder / compressed.name).write_bytes(gzip.compress(compressed.read_bytes()))
    both = [record for path in (plain, compressed) for record in tf.data.TFRecordDataset(str(path))]
    read = records(Task(str(folder))).take(100).as_numpy_iterator()
    assert {bytes(record) for record in read} == {record.numpy() for record in both}
