from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from echoing.errors import DataError, OptionError
from trainer.export import export_model

SIZE, CLASSES = 4, 3
KERNEL = np.random.default_rng(1).normal(size=(SIZE * SIZE * 3, CLASSES)).astype(np.float32)


class Linear(tf.Module):
    """Logits are the pixels times a matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.kernel = tf.Variable(KERNEL)

    def predict(self, images: Any) -> Any:
        if images.dtype == tf.uint8:
            images = tf.cast(images, tf.float32) / 127.5 - 1.0
        return tf.reshape(images, [-1, SIZE * SIZE * 3]) @ self.kernel


def preprocess(image_bytes: Any) -> Any:
    """Takes the middle of a PNG image."""
    image = tf.io.decode_png(image_bytes, channels=3)
    return tf.image.resize_with_crop_or_pad(image, SIZE, SIZE)


def png(pixels: np.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


def pixels(seed: int, height: int, width: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("export")
    model = Linear()
    path = export_model(model, model.predict, str(folder), 213, SIZE, preprocess)
    assert path == str(folder / "213")
    assert [path.name for path in folder.iterdir()] == ["213"]
    # Later training must not reach into what was exported.
    model.kernel.assign(tf.zeros_like(model.kernel))
    return tf.saved_model.load(path)


def check(outputs: dict[str, Any], logits: np.ndarray[Any, Any]) -> None:
    assert sorted(outputs) == ["classes", "logits", "probabilities"]
    np.testing.assert_allclose(outputs["logits"], logits, rtol=1e-5, atol=1e-5)
    exponents = np.exp(logits - logits.max(axis=-1, keepdims=True))
    expected = exponents / exponents.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(outputs["probabilities"], expected, rtol=1e-4, atol=1e-6)
    assert outputs["classes"].numpy().tolist() == logits.argmax(axis=-1).tolist()


@pytest.mark.parametrize("batch", [1, 5])
def test_float_images_give_the_models_logits(loaded: Any, batch: int) -> None:
    images = np.random.default_rng(2).uniform(-1, 1, (batch, SIZE, SIZE, 3)).astype(np.float32)
    outputs = loaded.signatures["images"](images=tf.constant(images))
    check(outputs, images.reshape(batch, -1) @ KERNEL)


@pytest.mark.parametrize("signature", ["image_bytes", "serving_default"])
def test_encoded_images_of_any_size_are_prepared_in_the_graph(loaded: Any, signature: str) -> None:
    images = [pixels(1, SIZE, SIZE), pixels(2, 10, 6), pixels(3, 8, 8)]
    outputs = loaded.signatures[signature](image_bytes=tf.constant([png(image) for image in images]))
    middles = [
        image[(height - SIZE) // 2 :, (width - SIZE) // 2 :][:SIZE, :SIZE]
        for image in images
        for height, width in [image.shape[:2]]
    ]
    check(outputs, (np.stack(middles).reshape(3, -1).astype(np.float32) / 127.5 - 1) @ KERNEL)


def test_without_preprocessing_float_images_are_the_default(tmp_path: Path) -> None:
    model = Linear()
    loaded = tf.saved_model.load(export_model(model, model.predict, str(tmp_path), 0, SIZE))
    assert sorted(loaded.signatures) == ["images", "serving_default"]
    images = np.ones((2, SIZE, SIZE, 3), np.float32)
    check(loaded.signatures["serving_default"](images=images), images.reshape(2, -1) @ KERNEL)


def test_version_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "model").write_text("precious")
    model = Linear()
    with pytest.raises(OptionError, match="without a version 7"):
        export_model(model, model.predict, str(tmp_path), 7, SIZE)
    assert [path.name for path in (tmp_path / "7").iterdir()] == ["model"]


def test_preprocessing_to_another_size_is_refused(tmp_path: Path) -> None:
    model = Linear()
    with pytest.raises(OptionError, match=r"preprocess is .*\[4, 4, 3\]"):
        export_model(
            model, model.predict, str(tmp_path), 1, SIZE, lambda image: tf.zeros([SIZE, SIZE + 1, 3])
        )
    assert list(tmp_path.iterdir()) == []


def test_failing_export_leaves_nothing_for_a_server_to_find(tmp_path: Path, files_at_most: Any) -> None:
    model = Linear()
    with files_at_most(2000), pytest.raises(DataError, match="Cannot export the model to"):
        export_model(model, model.predict, str(tmp_path), 1, SIZE)
    assert list(tmp_path.iterdir()) == []
