from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from trainer.held_batch import HeldBatch
from trainer.transfer import HOST


def spec_of(batch: dict[str, Any]) -> dict[str, Any]:
    return {name: tf.TensorSpec.from_tensor(tf.convert_to_tensor(value)) for name, value in batch.items()}


def batch_of(examples: int, uses: int, dtype: Any = tf.uint8) -> dict[str, Any]:
    return {
        "image": tf.cast(tf.fill([examples, 4, 4, 3], examples), dtype),
        "label": tf.range(examples),
        "name": tf.strings.as_string(tf.range(examples)),
        "whole": tf.constant(7.5),
        "device_uses": tf.constant(uses, tf.int64),
    }


def held_for(**spec: Any) -> HeldBatch:
    return HeldBatch(spec_of(batch_of(2, 1)) | spec, HOST)


def test_nothing_is_held_at_first() -> None:
    assert bool(held_for().is_used_up())


def test_batch_is_given_back_unchanged_until_it_is_used_up() -> None:
    held, batch = held_for(), batch_of(2, 3)
    held.hold(batch)
    repeats = []
    while not held.is_used_up():
        features, repeat = held.use()
        repeats.append(int(repeat))
        assert set(features) == {"image", "label", "name", "whole"}
        for name, value in features.items():
            assert value.dtype == batch[name].dtype
            np.testing.assert_array_equal(value, batch[name])
    assert repeats == [0, 1, 2]


def test_next_batch_counts_from_the_start() -> None:
    held = held_for()
    for _ in range(2):
        held.hold(batch_of(2, 2))
        assert [int(held.use()[1]) for _ in range(2)] == [0, 1]
        assert bool(held.is_used_up())


@pytest.mark.parametrize("dtype", [tf.uint8, tf.bfloat16, tf.float32])
def test_batches_of_changing_size_fit_into_one_room(dtype: Any) -> None:
    spec = spec_of(batch_of(2, 1, dtype))
    for name in ("image", "label", "name"):
        spec[name] = tf.TensorSpec([None, *spec[name].shape[1:]], spec[name].dtype)
    held = HeldBatch(spec, HOST)
    for examples in (2, 5, 1):
        held.hold(batch_of(examples, 1, dtype))
        features, _ = held.use()
        assert features["image"].dtype == dtype
        assert features["name"].shape == examples
        assert np.unique(features["image"].numpy().astype(int)).tolist() == [examples]


def test_image_is_not_copied() -> None:
    held, batch = held_for(image=tf.TensorSpec([2, 64, 64, 3], tf.float32)), batch_of(2, 1)
    batch["image"] = tf.random.stateless_uniform([2, 64, 64, 3], [1, 2])
    held.hold(batch)
    features, _ = held.use()
    assert np.shares_memory(np.asarray(memoryview(features["image"])), np.asarray(memoryview(batch["image"])))


def test_released_batch_has_no_use_and_no_memory_left() -> None:
    held = held_for()
    held.hold(batch_of(2, 5))
    held.use()
    held.release()
    assert bool(held.is_used_up())
    assert held._features["image"].read_value().shape == (0, 4, 4, 3)
