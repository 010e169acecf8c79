"""A trained model as a SavedModel that a server answers requests with."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from echoing.checks import check_integer
from echoing.errors import OptionError
from trainer import model_folder

IMAGES_SIGNATURE = "images"
BYTES_SIGNATURE = "image_bytes"


def export_model(
    model: Any,
    predict: Callable[[Any], Any],
    folder: str,
    step: int,
    image_size: int,
    preprocess: Callable[[Any], Any] | None = None,
) -> str:
    """Writes a SavedModel to `folder/step`, the layout in which TensorFlow Serving finds versions.

    Signatures, each with any batch size and the outputs `logits` and `probabilities` float32
    `[batch, classes]`, and `classes` int64 `[batch]`, the most likely class:

    - `images`: `images` float32 `[batch, image_size, image_size, 3]`, with the values that the model takes.
    - `image_bytes`, only with `preprocess`: `image_bytes` string `[batch]`, encoded images, prepared in the
      graph by the evaluation's own preprocessing, so that a server cannot differ from it.
    - `serving_default`: `image_bytes` if there is one, else `images`.

    The values saved are those of the variables at the time of the call: for averaged weights, call it while
    they are swapped in. Written under another name first, so that no server loads half a model.

    Args:
        model: trackable object that holds the variables.
        predict: maps images to logits `[batch, classes]` in evaluation mode, through `model`.
        folder: where the versions lie, local or remote; made if need be.
        step: training steps done; the version's number.
        image_size: height and width of the images, pixels.
        preprocess: maps an encoded image, string `[]`, to an image `[image_size, image_size, 3]` of any type
            that `predict` takes.

    Returns:
        The folder of the SavedModel.

    Raises:
        OptionError: that version exists already.
        DataError: it cannot be written.
    """
    version = check_integer("step", step, minimum=0)
    path = model_folder.join(folder, str(version))
    if model_folder.names(path):
        raise OptionError(
            "export_dir", folder, f"a folder without a version {version}", "Remove it, or name another."
        )

    def answer(images: Any) -> dict[str, Any]:
        logits = tf.cast(predict(images), tf.float32)
        return {
            "logits": logits,
            "probabilities": tf.nn.softmax(logits),
            "classes": tf.argmax(logits, axis=-1),
        }

    image_shape = [image_size, image_size, 3]

    def answer_images(images: Any) -> dict[str, Any]:
        return answer(images)

    def answer_bytes(image_bytes: Any) -> dict[str, Any]:
        assert preprocess is not None
        spec = _image_spec(preprocess, image_shape)
        # One picture after another where they are many: they differ in size until they are prepared.
        return answer(tf.map_fn(preprocess, image_bytes, fn_output_signature=spec))

    images_spec = tf.TensorSpec([None, *image_shape], tf.float32, name="images")
    signatures: dict[str, Any] = {IMAGES_SIGNATURE: _function(answer_images, images_spec)}
    if preprocess is not None:
        bytes_spec = tf.TensorSpec([None], tf.string, name="image_bytes")
        signatures[BYTES_SIGNATURE] = _function(answer_bytes, bytes_spec)
    signatures["serving_default"] = signatures.get(BYTES_SIGNATURE, signatures[IMAGES_SIGNATURE])
    _write(model, signatures, folder, path)
    return path


def _function(answer: Callable[[Any], dict[str, Any]], spec: Any) -> Any:
    return tf.function(answer, autograph=False).get_concrete_function(spec)


def _image_spec(preprocess: Callable[[Any], Any], shape: list[int]) -> Any:
    """Returns the specification of what `preprocess` gives; its shape is checked where it is known."""
    found = tf.function(preprocess, autograph=False).get_concrete_function(tf.TensorSpec([], tf.string))
    output = found.structured_outputs
    if not output.shape.is_compatible_with(shape):
        raise OptionError("preprocess", str(output.shape), f"a function that gives images of shape {shape}")
    return tf.TensorSpec(shape, output.dtype)


def _write(model: Any, signatures: Mapping[str, Any], folder: str, path: str) -> None:
    root = tf.Module(name="export")
    root.model = model
    partial = path + ".partial"
    with model_folder.naming("export the model to", path):
        try:
            tf.io.gfile.makedirs(folder)
            model_folder.remove_folder(partial)
            tf.saved_model.save(root, partial, signatures=signatures)
            model_folder.remove_folder(path)
            tf.io.gfile.rename(partial, path)
        except model_folder.FILE_ERRORS:
            with contextlib.suppress(*model_folder.FILE_ERRORS):
                model_folder.remove_folder(partial)
            raise
