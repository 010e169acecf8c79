from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from echoing.errors import DataError
from trainer.reaugment import Distortion, distort, draw, reaugment, reaugment_repeat

SEED = [3, 5]


def pictures(dtype: str, batch: int = 6, height: int = 25, width: int = 50) -> np.ndarray[Any, Any]:
    generator = np.random.default_rng(1)
    if dtype == "uint8":
        return generator.integers(0, 256, (batch, height, width, 3), dtype=np.uint8)
    return generator.uniform(-1, 1, (batch, height, width, 3)).astype(np.float32)


def one(**changes: Any) -> Distortion:
    """A distortion of one image that changes what is named, and nothing else."""
    values = {"flip": False, "down": 0, "right": 0, "brightness": 0.0, "cb": 0.0, "cr": 0.0} | changes
    return Distortion(**{name: tf.constant([value]) for name, value in values.items()})


def row(*values: float, dtype: str = "float32") -> Any:
    """An image of one row of grey pixels."""
    return tf.constant(np.repeat(np.array(values, dtype)[None, None, :, None], 3, axis=3))


def moved(image: np.ndarray[Any, Any], flip: bool, down: int, right: int) -> np.ndarray[Any, Any]:
    """The same by padding and cutting."""
    height, width = image.shape[:2]
    image = image[:, ::-1] if flip else image
    padded = np.pad(image, [(abs(down), abs(down)), (abs(right), abs(right)), (0, 0)], mode="edge")
    top, left = abs(down) - down, abs(right) - right
    return padded[top : top + height, left : left + width]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, [0.1, 0.2, 0.3, 0.4]),
        ({"flip": True}, [0.4, 0.3, 0.2, 0.1]),
        ({"right": 1}, [0.1, 0.1, 0.2, 0.3]),
        ({"right": -2}, [0.3, 0.4, 0.4, 0.4]),
        ({"flip": True, "right": 1}, [0.4, 0.4, 0.3, 0.2]),
        ({"right": 9}, [0.1, 0.1, 0.1, 0.1]),
        ({"down": 1}, [0.1, 0.2, 0.3, 0.4]),
        # 0.25 of 0..1 is 0.5 of -1..1.
        ({"brightness": 0.25}, [0.6, 0.7, 0.8, 0.9]),
        ({"brightness": 0.4}, [0.9, 1.0, 1.0, 1.0]),
        ({"brightness": -0.5}, [-0.9, -0.8, -0.7, -0.6]),
    ],
)
def test_each_change_alone_gives_the_pixels_computed_by_hand(
    change: dict[str, Any], expected: list[float]
) -> None:
    result = distort(row(0.1, 0.2, 0.3, 0.4), one(**change))
    np.testing.assert_allclose(result[0, 0], np.repeat(np.array(expected)[:, None], 3, axis=1), atol=1e-6)


@pytest.mark.parametrize(
    ("chroma", "rgb"),
    [({"cb": 0.1}, [0, -0.0688272, 0.3544]), ({"cr": -0.1}, [-0.2804, 0.1428272, 0])],
)
def test_chroma_moves_the_channels_as_in_jpeg(chroma: dict[str, float], rgb: list[float]) -> None:
    np.testing.assert_allclose(distort(row(0.0), one(**chroma))[0, 0, 0], rgb, atol=1e-6)


def test_bytes_are_rounded_and_clipped_to_their_range() -> None:
    result = distort(row(0, 100, 250, dtype="uint8"), one(brightness=0.03))  # 7.65 of 255
    assert result.dtype == tf.uint8
    assert result[0, 0, :, 0].numpy().tolist() == [8, 108, 255]
    assert distort(row(3, 100, dtype="uint8"), one(brightness=-0.03))[0, 0, :, 0].numpy().tolist() == [0, 92]


def test_bfloat16_keeps_its_dtype_and_range() -> None:
    result = distort(tf.cast(row(0.5, -1.0), tf.bfloat16), one(brightness=0.5))
    assert result.dtype == tf.bfloat16
    assert result.numpy()[0, 0, :, 0].astype(float).tolist() == [1.0, 0.0]


@settings(max_examples=50, deadline=None)
@given(st.booleans(), st.integers(-7, 7), st.integers(-7, 7), st.integers(1, 6), st.integers(1, 6))
def test_moving_is_flipping_padding_with_the_edge_and_cutting(
    flip: bool, down: int, right: int, height: int, width: int
) -> None:
    image = pictures("uint8", 1, height, width)
    result = distort(tf.constant(image), one(flip=flip, down=down, right=right))
    np.testing.assert_array_equal(result[0], moved(image[0], flip, down, right))


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_every_image_of_a_batch_follows_its_own_draws(dtype: str) -> None:
    images = pictures(dtype)
    drawn = [value.numpy() for value in draw(6, 25, 50, SEED)]
    assert len({tuple(values) for values in zip(*drawn, strict=True)}) == 6
    scale, low, high = (255, 0, 255) if dtype == "uint8" else (2, -1, 1)
    result = reaugment(tf.constant(images), SEED).numpy()
    for image, got, flip, down, right, brightness, cb, cr in zip(images, result, *drawn, strict=True):
        shift = np.array(
            [brightness + 1.402 * cr, brightness - 0.344136 * cb - 0.714136 * cr, brightness + 1.772 * cb]
        )
        expected = np.clip(moved(image, flip, down, right) + scale * shift, low, high)
        np.testing.assert_allclose(got, expected, atol=0.5 + 1e-3 if dtype == "uint8" else 1e-5)


def test_draws_fill_their_ranges_and_do_not_leave_them() -> None:
    drawn = draw(20_000, 25, 50, SEED)
    assert np.mean(drawn.flip) == pytest.approx(0.5, abs=0.02)
    assert np.unique(drawn.down).tolist() == [-1, 0, 1]
    assert np.unique(drawn.right).tolist() == [-2, -1, 0, 1, 2]
    counts = np.unique(drawn.right, return_counts=True)[1]
    assert counts / 20_000 == pytest.approx(np.full(5, 0.2), abs=0.015)
    for values, most in ((drawn.brightness, 32 / 255), (drawn.cb, 0.1), (drawn.cr, 0.1)):
        assert np.max(values) == pytest.approx(most, rel=0.01)
        assert np.min(values) == pytest.approx(-most, rel=0.01)
        assert np.mean(values) == pytest.approx(0, abs=0.02 * most)
    assert np.abs(np.corrcoef([drawn.brightness, drawn.cb, drawn.cr, drawn.right]) - np.eye(4)).max() < 0.03


def test_images_of_few_pixels_are_not_translated() -> None:
    drawn = draw(100, 1, 12, SEED)
    assert not np.any(drawn.down) and not np.any(drawn.right)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "bfloat16"])
def test_result_repeats_with_the_seed_only_and_keeps_shape_dtype_and_range(dtype: str) -> None:
    images = tf.cast(pictures("uint8" if dtype == "uint8" else "float32"), dtype)
    first, again, other = (reaugment(images, seed) for seed in (SEED, SEED, [3, 6]))
    assert first.dtype == images.dtype and first.shape == images.shape
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    values = np.asarray(first).astype(float)
    assert values.min() >= (0 if dtype == "uint8" else -1) and values.max() <= (
        255 if dtype == "uint8" else 1
    )


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "bfloat16"])
def test_compiled_with_an_unknown_batch_size_gives_the_same(dtype: str, jit: bool) -> None:
    images = tf.cast(pictures("uint8" if dtype == "uint8" else "float32", 3, 9, 30), dtype)
    signature = [tf.TensorSpec([None, 9, 30, 3], images.dtype), tf.TensorSpec([2], tf.int64)]
    compiled = tf.function(
        lambda *a: reaugment(*a), input_signature=signature, jit_compile=jit, autograph=False
    )
    result = compiled(images, tf.constant(SEED, tf.int64))
    expected = reaugment(images, SEED)
    tolerance = {"uint8": 1, "float32": 1e-5, "bfloat16": 2**-7}[dtype]
    np.testing.assert_allclose(
        np.asarray(result).astype(float), np.asarray(expected).astype(float), atol=tolerance
    )


def test_empty_batch_stays_empty() -> None:
    assert reaugment(tf.zeros([0, 8, 8, 3]), SEED).shape == (0, 8, 8, 3)


def test_other_dtypes_are_refused() -> None:
    with pytest.raises(DataError, match="int32 cannot be re-augmented"):
        reaugment(tf.zeros([1, 8, 8, 3], tf.int32), SEED)


def test_first_use_is_left_as_it_is_and_every_repeat_is_keyed_by_seed_and_step() -> None:
    images = tf.constant(pictures("float32"))

    def used(repeat: int, seed: int = 3, step: int = 5) -> Any:
        return reaugment_repeat(images, tf.constant(repeat, tf.int64), seed, tf.constant(step, tf.int64))

    np.testing.assert_array_equal(used(0), images)
    np.testing.assert_array_equal(used(1), reaugment(images, [3, 5]))
    np.testing.assert_array_equal(used(2), used(1))
    assert not np.array_equal(used(1, seed=4), used(1))
    assert not np.array_equal(used(1, step=6), used(1))
