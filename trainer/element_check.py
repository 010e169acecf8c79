"""What the elements of a dataset must be, so that a trainer can train on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from echoing.errors import DataError, OptionError
from trainer.batch_source import check_features
from trainer.device_echo import DEVICE_USES, check_uses_kind
from trainer.feed import COLOR_SHIFT, images_shape


def check_element_spec(spec: Any, image_size: int, layout: str = "nhwc") -> None:
    """Checks the specification of a dataset's elements before anything is built for them.

    Args:
        spec: the dataset's `element_spec`.
        image_size: height and width that the images must have, pixels.
        layout: theirs, `nhwc` or `hwcn`.

    Raises:
        DataError: the elements are no batches of dense tensors with images and integer labels.
        OptionError: the images are not of that size.
    """
    check_features(spec)
    assert isinstance(spec, Mapping)
    for name, feature in spec.items():
        if not isinstance(feature, tf.TensorSpec):
            raise DataError(f"The feature {name!r} is {feature}, but a trainer takes dense tensors only.")
    shape = spec["image"].shape
    if not shape.is_compatible_with(images_shape(image_size, layout)):
        raise OptionError(
            "image_size", image_size, f"the size of the dataset's images, which have the shape {shape}"
        )
    if DEVICE_USES in spec:
        uses = spec[DEVICE_USES]
        check_uses_kind(uses.shape, uses.dtype.is_integer, uses.dtype.name)
    if not spec["label"].dtype.is_integer:
        raise DataError(f"`label` has the dtype {spec['label'].dtype.name}, but must be an integer.")
    if COLOR_SHIFT in spec and not spec[COLOR_SHIFT].shape.is_compatible_with([None, 3]):
        raise DataError(f"`{COLOR_SHIFT}` has the shape {spec[COLOR_SHIFT].shape}, but must be [batch, 3].")
