from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from echoing.errors import OptionError
from trainer.models.registry import MODEL_NAMES, make_model, minimum_image_size


def test_networks_and_their_least_images_are_those_documented() -> None:
    assert {name: minimum_image_size(name) for name in MODEL_NAMES} == {
        "inception_v3": 75,
        "resnet50": 17,
        "resnet18": 17,
    }


@pytest.mark.parametrize("call", [minimum_image_size, make_model])
def test_unknown_network_is_refused_with_the_known_ones(call: Any) -> None:
    with pytest.raises(OptionError, match=r"model is 'vgg'.*inception_v3, resnet50, resnet18"):
        call("vgg")


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_every_network_trains_at_its_least_size_with_every_option(name: str) -> None:
    network = make_model(
        name,
        image_size=minimum_image_size(name),
        width_multiplier=0.01,
        num_classes=3,
        compute_dtype="bfloat16",
        seed=1,
        batch_norm_decay=0.9,
        batch_norm_epsilon=1e-5,
    )
    size = minimum_image_size(name)
    outputs = network(tf.zeros([2, size, size, 3], tf.uint8), training=True, step=3, replica=1)
    assert (outputs.main.dtype, outputs.main.shape) == (tf.float32, [2, 3])
    assert (outputs.auxiliary is not None) == (name == "inception_v3")
    variables = [*network.trainable_variables, *network.moving_variables]
    assert {variable.dtype for variable in variables} == {tf.float32}
    assert len(network.moving_variables) == 2 * len(outputs.moments) > 0
    assert {moments.mean.dtype for moments in outputs.moments} == {tf.float32}
    evaluated = network(tf.zeros([2, size, size, 3]), training=False)
    assert (evaluated.auxiliary, evaluated.moments) == (None, ())


@pytest.mark.parametrize("name", MODEL_NAMES)
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("image_size", 16),
        ("image_size", 75.5),
        ("width_multiplier", float("nan")),
        ("num_classes", 1),
        ("compute_dtype", "float16"),
        ("seed", -1),
        ("batch_norm_decay", 1.5),
        ("batch_norm_epsilon", 0),
    ],
)
def test_option_out_of_range_is_refused_by_name(name: str, option: str, value: Any) -> None:
    with pytest.raises(OptionError, match=option):
        make_model(name, **{option: value})


def shapes_left_open(name: str, size: int) -> list[str]:
    """Returns the operations of a training call whose shapes are not known for a batch of a fixed size."""
    network = make_model(name, image_size=size, width_multiplier=0.01, num_classes=3)
    call = tf.function(lambda images, step: network(images, True, step, 1)[:2], autograph=False)
    spec = tf.TensorSpec([4, size, size, 3], tf.uint8)
    graph = call.get_concrete_function(spec, tf.TensorSpec([], tf.int64)).graph
    outputs = [output for operation in graph.get_operations() for output in operation.outputs]
    assert len(outputs) > 100
    left_open = [output.name for output in outputs if not output.shape.is_fully_defined()]
    # The last output of the fused kernel is memory that it keeps for its gradient: no shape by design.
    return [name for name in left_open if not re.fullmatch(r"FusedBatchNormV3(_\d+)?:5", name)]


def test_shapes_of_a_residual_network_are_static() -> None:
    assert shapes_left_open("resnet18", 20) == []


@pytest.mark.slow
def test_shapes_of_inception_are_static() -> None:
    assert shapes_left_open("inception_v3", 75) == []


def test_options_are_checked_without_importing_tensorflow() -> None:
    code = (
        "import sys, trainer.models.registry as r; r.minimum_image_size('resnet18'); "
        "assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(("name", "size"), [("resnet18", 32), ("inception_v3", 75)])
def test_bfloat16_gives_nearly_the_logits_of_float32(name: str, size: int) -> None:
    images = tf.random.stateless_uniform([8, size, size, 3], [1, 2], -1, 1)
    full, half = (
        make_model(name, image_size=size, width_multiplier=0.125, num_classes=5, compute_dtype=dtype)(
            images, training=False
        ).main.numpy()
        for dtype in ("float32", "bfloat16")
    )
    # bfloat16 has 8 significant bits; the errors of the layers add up.
    np.testing.assert_allclose(half, full, atol=0.1 * abs(full).max())
    assert not np.array_equal(half, full)
