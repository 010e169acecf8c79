"""Whether the elements of a pipeline can go to a device: their types, and that their shapes are static."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf

from pipeline.element import COLOR_SHIFT, IMAGE, LABEL

SENT = (IMAGE, LABEL, COLOR_SHIFT)
"""Features that go to the device; the others stay on the host."""
TPU_IMAGE_TYPES = ("float32", "bfloat16")
"""What a TPU's infeed takes; uint8 had no kernel there (tensorflow/tensorflow#23609)."""


def element_problems(spec: Mapping[str, Any], kind: str) -> list[str]:
    """Returns why elements cannot be trained on; empty if they can.

    Args:
        spec: of the elements, a dictionary of `tf.TensorSpec`.
        kind: of the devices, such as `tpu`.
    """
    problems = []
    for name, feature in spec.items():
        if not isinstance(feature, tf.TensorSpec):
            problems.append(f"The feature {name!r} is {feature}: only dense tensors go to a device.")
            continue
        if kind == "tpu" and feature.dtype == tf.string:
            problems.append(f"The feature {name!r} is a string, which a TPU cannot take. Drop it.")
        if kind == "tpu" and name in SENT and not feature.shape.is_fully_defined():
            problems.append(
                f"The feature {name!r} has the shape {feature.shape}: a TPU needs static shapes. "
                "Drop the smaller last batch."
            )
    for name in (IMAGE, LABEL):
        if name not in spec:
            problems.append(f"The elements have no feature {name!r}.")
    if kind == "tpu" and isinstance(spec.get(LABEL), tf.TensorSpec) and spec[LABEL].dtype != tf.int32:
        problems.append(f"The labels are {spec[LABEL].dtype.name}, and a TPU takes int32.")
    if kind == "tpu" and isinstance(spec.get(IMAGE), tf.TensorSpec):
        dtype = spec[IMAGE].dtype.name
        if dtype not in TPU_IMAGE_TYPES:
            problems.append(
                f"The images are {dtype}, and a TPU's infeed takes {' or '.join(TPU_IMAGE_TYPES)}. "
                "Give --image-dtype."
            )
    return problems


def image_bytes(spec: Mapping[str, Any]) -> int:
    """Returns the bytes that an image takes on its way to the device, its label and colours included.

    Args:
        spec: of elements with a static batch size.
    """
    total = 0
    for name in SENT:
        if name in spec:
            total += spec[name].shape.num_elements() * spec[name].dtype.size
    return int(total // spec[LABEL].shape[0])
