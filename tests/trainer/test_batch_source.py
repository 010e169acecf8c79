from __future__ import annotations

import threading

import numpy as np
import pytest
import tensorflow as tf

from echoing.errors import DataError
from trainer.batch_source import BatchSource


def test_dataset_gives_every_batch_as_arrays_with_a_smaller_last_one() -> None:
    dataset = tf.data.Dataset.from_tensor_slices({"image": np.zeros((5, 2, 2, 3)), "label": range(5)}).batch(
        2
    )
    labels = [batch["label"].tolist() for batch in BatchSource(dataset)]
    assert labels == [[0, 1], [2, 3], [4]]


def test_empty_dataset_gives_nothing() -> None:
    dataset = tf.data.Dataset.from_tensor_slices({"image": [0.0], "label": [0]}).take(0)
    assert list(BatchSource(dataset)) == []


def test_bfloat16_batch_keeps_its_values() -> None:
    dataset = tf.data.Dataset.from_tensors({"image": tf.constant([1.5], tf.bfloat16), "label": [0]})
    (batch,) = BatchSource(dataset)
    assert batch["image"].dtype == tf.bfloat16.as_numpy_dtype
    assert batch["image"].astype(float).tolist() == [1.5]


@pytest.mark.parametrize("element", [{"label": [0]}, {"image": [0.0]}])
@pytest.mark.parametrize("as_dataset", [True, False])
def test_missing_feature_is_named(element: dict[str, list[float]], as_dataset: bool) -> None:
    missing = "image" if "label" in element else "label"
    dataset = tf.data.Dataset.from_tensors(element) if as_dataset else [element]
    with pytest.raises(DataError, match=f"lack {missing}; found: {next(iter(element))}"):
        list(BatchSource(dataset))


def test_elements_that_are_no_dictionaries_are_refused() -> None:
    with pytest.raises(DataError, match="dictionaries"):
        list(BatchSource(tf.data.Dataset.range(3)))


def test_cancel_ends_a_wait_inside_tensorflow() -> None:
    # An element that never comes: the filter passes nothing of an endless dataset.
    dataset = tf.data.Dataset.from_tensors({"image": [0.0], "label": [0]}).repeat()
    source = BatchSource(dataset.filter(lambda element: element["label"][0] > 0))
    ended: list[type[BaseException]] = []

    def consume() -> None:
        try:
            list(source)
        except tf.errors.CancelledError as error:
            ended.append(type(error))

    thread = threading.Thread(target=consume)
    thread.start()
    thread.join(timeout=0.3)
    source.cancel()
    thread.join(timeout=60)
    assert ended == [tf.errors.CancelledError]
