"""Windows: how random ones are distributed, what they cover, and where the central one lies."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from pipeline.preprocessing.crop import central_window, crop_window, cut, flip

HEIGHT, WIDTH = 600, 800
DRAWS = 3000


def windows(count: int, size: tuple[int, int], boxes: list[list[float]] | None = None) -> np.ndarray:
    given_boxes = None if boxes is None else tf.reshape(tf.constant(boxes, tf.float32), [-1, 4])
    keys = tf.data.Dataset.range(count).map(lambda number: tf.stack([number, 5]))
    return np.array(
        list(keys.map(lambda key: crop_window(tf.constant(size), given_boxes, key)).as_numpy_iterator())
    )


@pytest.fixture(scope="module")
def drawn() -> np.ndarray:
    return windows(DRAWS, (HEIGHT, WIDTH))


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    """Relative top, left, height and width as specified, drawn by NumPy.

    Aspect ratio uniform, height uniform among those of 5 to 100 % of the area that fit, place uniform; drawn
    anew while less than a tenth of the box, the whole image, is covered.
    """
    generator = np.random.default_rng(0)
    aspect = generator.uniform(3 / 4, 4 / 3, 100_000)
    low = np.sqrt(0.05 * HEIGHT * WIDTH / aspect)
    high = np.minimum(np.minimum(np.sqrt(HEIGHT * WIDTH / aspect), WIDTH / aspect), HEIGHT)
    height = generator.uniform(low, high)
    width = height * aspect
    top = generator.uniform(0, 1, len(height)) * (HEIGHT - height)
    left = generator.uniform(0, 1, len(height)) * (WIDTH - width)
    kept = height * width >= 0.1 * HEIGHT * WIDTH
    return np.stack([top, left, height, width], axis=1)[kept]


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """Largest distance between two empirical distribution functions (Kolmogorov-Smirnov)."""
    values = np.sort(np.concatenate([one, other]))
    shares = [np.searchsorted(np.sort(sample), values, "right") / len(sample) for sample in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())


@pytest.mark.parametrize(
    "measure",
    [
        pytest.param(lambda w: w[:, 2] * w[:, 3] / (HEIGHT * WIDTH), id="area"),
        pytest.param(lambda w: w[:, 3] / w[:, 2], id="aspect ratio"),
        pytest.param(lambda w: w[:, 2] / HEIGHT, id="height"),
        pytest.param(lambda w: (w[:, 0] + w[:, 2] / 2) / HEIGHT, id="row of the centre"),
        pytest.param(lambda w: (w[:, 1] + w[:, 3] / 2) / WIDTH, id="column of the centre"),
    ],
)
def test_random_windows_are_distributed_as_specified(measure, drawn, expected):
    # 1.95 / sqrt(DRAWS) is exceeded by chance once in a thousand times; rounding to pixels adds a little.
    assert distance(measure(drawn.astype(float)), measure(expected)) < 1.95 / np.sqrt(DRAWS) + 0.005


def test_random_windows_keep_to_their_ranges_and_to_the_image(drawn):
    top, left, height, width = drawn.T
    area = height * width / (HEIGHT * WIDTH)
    # Not 5 %: without boxes a tenth of the whole image must be covered. A pixel of rounding either way.
    assert area.min() >= 0.1
    assert area.max() <= 1.0
    assert (width / height).min() >= 3 / 4 * 0.99
    assert (width / height).max() <= 4 / 3 * 1.01
    assert min(top.min(), left.min()) >= 0
    assert (top + height).max() <= HEIGHT
    assert (left + width).max() <= WIDTH


def test_a_window_covers_a_tenth_of_one_of_the_boxes():
    boxes = [[0.1, 0.6, 0.3, 0.9], [0.7, 0.0, 1.0, 0.2]]
    top, left, height, width = windows(300, (200, 300), boxes).T
    covered = []
    for ymin, xmin, ymax, xmax in boxes:
        rows = np.minimum(top + height, ymax * 200) - np.maximum(top, ymin * 200)
        columns = np.minimum(left + width, xmax * 300) - np.maximum(left, xmin * 300)
        covered.append(
            np.maximum(rows, 0) * np.maximum(columns, 0) / ((ymax - ymin) * (xmax - xmin) * 60_000)
        )
    assert np.max(covered, axis=0).min() >= 0.1 - 1e-9
    assert np.max(covered, axis=0).min() < 0.3
    # Small boxes allow small windows, down to 5 % of the area.
    assert 0.05 * 0.98 <= (height * width / 60_000).min() < 0.1


def test_no_boxes_are_as_none():
    np.testing.assert_array_equal(windows(20, (40, 60), []), windows(20, (40, 60)))


@pytest.mark.parametrize("size", [(1, 1), (1, 2000), (2000, 1)])
def test_the_whole_image_is_taken_where_no_window_fits(size):  # IM-10
    np.testing.assert_array_equal(windows(20, size), [[0, 0, *size]] * 20)


def test_a_window_depends_on_the_key_alone(both_ways):
    def window(size, key):
        return crop_window(size, None, key)

    size = np.int32([40, 60])
    first = both_ways(window, size, np.int64([3, 2**62]))
    np.testing.assert_array_equal(first, both_ways(window, size, np.int64([3, 2**62])))
    assert not np.array_equal(first, both_ways(window, size, np.int64([4, 2**62])))


def test_the_central_window_leaves_a_sixteenth_at_each_end_for_every_size():
    sides = np.arange(1, 5000, dtype=np.int32)
    sizes = np.stack([sides, sides[::-1]], axis=1)
    result = central_window(tf.constant(sizes)).numpy()
    np.testing.assert_array_equal(result, np.concatenate([sizes // 16, sizes - 2 * (sizes // 16)], axis=1))
    assert result[:, 2:].min() == 1


@given(height=st.integers(1, 90), width=st.integers(1, 90), fraction=st.sampled_from([0.1, 0.5, 0.875, 1.0]))
def test_the_central_window_is_tensorflows_central_crop(height, width, fraction):
    image = np.arange(height * width * 3).reshape(height, width, 3)
    window = central_window(tf.constant([height, width]), fraction)
    np.testing.assert_array_equal(cut(tf.constant(image), window), tf.image.central_crop(image, fraction))


def test_cutting_takes_the_rows_and_columns_of_the_window(picture, both_ways):
    image = picture(9, 8)
    np.testing.assert_array_equal(both_ways(cut, image, np.int32([2, 1, 3, 5])), image[2:5, 1:6])


@pytest.mark.parametrize("is_flipped", [True, False])
def test_flipping_mirrors_left_to_right(is_flipped, picture, both_ways):
    image = picture(2, 5)
    np.testing.assert_array_equal(both_ways(flip, image, is_flipped), image[:, ::-1] if is_flipped else image)
