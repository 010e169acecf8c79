from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from echoing.errors import OptionError
from trainer.models.inception_v3 import InceptionV3
from trainer.models.layers import Convolution


def parameters(variables: Any) -> int:
    return sum(int(np.prod(variable.shape)) for variable in variables)


def is_auxiliary(variable: Any) -> bool:
    return bool(variable.name.startswith("AuxLogits"))


@pytest.fixture(scope="module")
def full() -> InceptionV3:
    return InceptionV3()


@pytest.fixture(scope="module")
def small() -> InceptionV3:
    return InceptionV3(image_size=75, width_multiplier=0.125, num_classes=10)


def test_trunk_and_logits_have_the_parameters_of_the_published_network(full: InceptionV3) -> None:
    assert parameters(v for v in full.variables if not is_auxiliary(v)) == 23_853_833


def convolutions(network: InceptionV3) -> list[Convolution]:
    """The convolutions of the trunk, in the order in which Keras' network makes them."""
    chains = [network.stem, *(branch for branches in network.mixed.values() for branch in branches)]
    return [layer for chain in chains for node in chain if isinstance(node, list) for layer in node]


def numbered(network: Any, kind: type) -> list[Any]:
    """Keras layers of a kind in the order in which they were made."""
    layers = [layer for layer in network.layers if isinstance(layer, kind)]
    return sorted(layers, key=lambda layer: int(re.search(r"(\d*)$", layer.name).group() or 0))


@pytest.mark.slow
def test_trunk_has_the_parameters_and_gives_the_logits_of_keras_network(full: InceptionV3) -> None:
    keras = tf.keras
    keras_network = keras.applications.InceptionV3(weights=None, classes=1001, classifier_activation=None)
    assert keras_network.count_params() == parameters(v for v in full.variables if not is_auxiliary(v))
    ours, generator = convolutions(full), np.random.default_rng(0)
    theirs = numbered(keras_network, keras.layers.Conv2D)
    norms = numbered(keras_network, keras.layers.BatchNormalization)
    for layer, convolution, norm in zip(ours, theirs, norms, strict=True):
        convolution.set_weights([layer.kernel.numpy()])
        values = [generator.uniform(low, high, norm.beta.shape) for low, high in ((-1, 1), (-1, 1), (1, 2))]
        own = layer.batch_norm
        for variable, value in zip((own.beta, own.moving_mean, own.moving_variance), values, strict=True):
            variable.assign(value)
        norm.set_weights(values)
    keras_network.layers[-1].set_weights([full.classifier.kernel.numpy(), full.classifier.bias.numpy()])
    images = generator.uniform(-1, 1, (2, 299, 299, 3)).astype(np.float32)
    logits = full(tf.constant(images), training=False)
    expected = keras_network(images, training=False).numpy()
    assert logits.auxiliary is None
    assert expected.std() > 0.01
    np.testing.assert_allclose(logits.main, expected, atol=1e-4 * abs(expected).max())


def test_auxiliary_head_has_the_parameters_counted_by_hand(full: InceptionV3) -> None:
    first = 768 * 128 + 3 * 128  # a 1 x 1 convolution; offset and two averages a channel
    second = 5 * 5 * 128 * 768 + 3 * 768
    logits = 768 * 1001 + 1001
    assert parameters(v for v in full.variables if is_auxiliary(v)) == first + second + logits


def test_names_are_unique_and_kernels_alone_decay(full: InceptionV3) -> None:
    assert len({variable.name for variable in full.variables}) == len(full.variables)
    # 94 convolutions and 2 in the auxiliary head, 2 classifiers.
    assert len(full.regularized_variables) == 98
    assert not any("beta" in v.name or "bias" in v.name for v in full.regularized_variables)
    # A kernel and an offset a convolution, weights and biases a classifier.
    assert len(full.trainable_variables) == 2 * 98
    assert len(full.moving_variables) == 2 * 96
    assert {v.name.rpartition("/")[2] for v in full.moving_variables} == {
        "moving_mean:0",
        "moving_variance:0",
    }


@pytest.mark.parametrize("dtype", [tf.float32, tf.bfloat16, tf.uint8])
def test_both_heads_give_float32_logits_for_every_image_dtype(small: InceptionV3, dtype: Any) -> None:
    logits = small(tf.zeros([2, 75, 75, 3], dtype), training=True)
    for head in (logits.main, logits.auxiliary):
        assert (head.dtype, head.shape) == (tf.float32, [2, 10])


def test_uint8_image_equals_the_same_image_scaled(small: InceptionV3) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (2, 75, 75, 3), dtype=np.uint8)
    scaled = (pixels / 127.5 - 1).astype(np.float32)
    np.testing.assert_allclose(
        small(tf.constant(pixels), training=False).main,
        small(tf.constant(scaled), training=False).main,
        rtol=1e-3,
        atol=1e-5,
    )


def test_bfloat16_network_keeps_float32_variables() -> None:
    network = InceptionV3(image_size=75, width_multiplier=0.125, num_classes=4, compute_dtype="bfloat16")
    assert {variable.dtype for variable in network.variables} == {tf.float32}
    assert network(tf.zeros([1, 75, 75, 3]), training=False).main.dtype == tf.float32


def test_training_call_measures_every_batch_normalisation_and_assigns_nothing(small: InceptionV3) -> None:
    before = [variable.numpy() for variable in small.variables]
    images = tf.random.stateless_uniform([2, 75, 75, 3], [1, 2])
    moments = small(images, training=True).moments
    assert len({id(measured.batch_norm) for measured in moments}) == len(moments) == 96
    for variable, value in zip(small.variables, before, strict=True):
        assert np.array_equal(variable.numpy(), value)
    kernel = small.stem[0][0].kernel
    patches = tf.nn.conv2d(images, kernel, 2, "VALID").numpy()
    np.testing.assert_allclose(moments[0].mean, patches.mean((0, 1, 2)), rtol=1e-4, atol=1e-6)


def test_dropout_of_a_training_call_depends_on_step_and_replica(small: InceptionV3) -> None:
    images = tf.random.stateless_uniform([2, 75, 75, 3], [1, 2])
    results = [small(images, True, step, replica).main.numpy() for step, replica in ((1, 0), (1, 1), (2, 0))]
    assert np.array_equal(results[0], small(images, True, 1, 0).main.numpy())
    assert not np.allclose(results[0], results[1]) and not np.allclose(results[0], results[2])


@pytest.mark.parametrize("image_size", [76, 107, 139])
def test_other_image_sizes_train(image_size: int) -> None:
    network = InceptionV3(image_size=image_size, width_multiplier=0.01, num_classes=3)
    logits = network(tf.zeros([1, image_size, image_size, 3]), training=True)
    assert logits.main.shape == logits.auxiliary.shape == [1, 3]


def test_no_layer_is_narrower_than_sixteen_channels() -> None:
    network = InceptionV3(image_size=75, width_multiplier=0.001, num_classes=3)
    assert {v.shape[-1] for v in network.regularized_variables} == {16, 3}


def test_weights_repeat_with_the_seed_only(small: InceptionV3) -> None:
    def kernel(seed: int) -> Any:
        return InceptionV3(75, 0.125, 10, seed=seed).regularized_variables[5].numpy()

    same = small.regularized_variables[5].numpy()
    assert np.array_equal(kernel(0), same)
    assert not np.array_equal(kernel(1), same)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("image_size", 74),
        ("image_size", 0),
        ("width_multiplier", 0),
        ("width_multiplier", float("nan")),
        ("num_classes", 1),
        ("compute_dtype", "float16"),
        ("seed", -1),
    ],
)
def test_option_out_of_range_is_refused_by_name(option: str, value: Any) -> None:
    with pytest.raises(OptionError, match=option):
        InceptionV3(**{option: value})
