from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from trainer.losses import training_loss
from trainer.models.layers import Convolution
from trainer.models.resnet import ResNet
from trainer.models.resnet_architecture import RESNET18, RESNET50


def parameters(variables: Any) -> int:
    return sum(int(np.prod(variable.shape)) for variable in variables)


@pytest.fixture(scope="module")
def resnet50() -> ResNet:
    """With the epsilon of Keras' network; 33 pixels leave odd grids, where Keras pads as we do."""
    return ResNet(RESNET50, image_size=33, batch_norm_epsilon=1.001e-5)


@pytest.fixture
def tiny() -> ResNet:
    return ResNet(RESNET18, image_size=32, width_multiplier=0.125, num_classes=4)


def test_parameters_are_as_many_as_published(resnet50: ResNet) -> None:
    # torchvision's numbers for 1,000 classes, and the weights and bias of one more.
    assert parameters(resnet50.trainable_variables) == 25_557_032 + 2_049
    assert parameters(ResNet(RESNET18).trainable_variables) == 11_689_512 + 513


def test_roles_of_the_variables_and_names(resnet50: ResNet) -> None:
    # 53 convolutions (4 on shortcuts) with scale and offset, and a classifier.
    assert len(resnet50.trainable_variables) == 53 * 3 + 2
    assert len(resnet50.regularized_variables) == 53 + 1
    assert len(resnet50.moving_variables) == 53 * 2
    assert len({variable.name for variable in resnet50.variables}) == len(resnet50.variables)
    assert not any("BatchNorm" in v.name or "bias" in v.name for v in resnet50.regularized_variables)


def convolutions(network: ResNet) -> dict[str, Convolution]:
    """Our convolutions by the names of Keras' network."""
    named = {"conv1": network.stem}
    blocks = iter(network.blocks)
    for stage, count in enumerate(RESNET50.blocks):
        for number in range(count):
            block, name = next(blocks), f"conv{stage + 2}_block{number + 1}"
            if block.shortcut is not None:
                named[f"{name}_0"] = block.shortcut
            named |= {f"{name}_{place + 1}": layer for place, layer in enumerate(block.layers)}
    return named


def keras_network_of_version_one_and_a_half() -> Any:
    """Keras' ResNet-50 with the strides moved from the first to the second convolution of a block."""
    original = tf.keras.applications.ResNet50(
        weights=None, classes=1001, input_shape=(33, 33, 3), classifier_activation=None
    )
    config = original.get_config()
    for layer in config["layers"]:
        if layer["config"]["name"] in [f"conv{stage}_block1_1_conv" for stage in (3, 4, 5)]:
            layer["config"]["strides"] = (1, 1)
        if layer["config"]["name"] in [f"conv{stage}_block1_2_conv" for stage in (3, 4, 5)]:
            layer["config"]["strides"] = (2, 2)
    return type(original).from_config(config)


@pytest.mark.slow
def test_parameters_and_logits_are_those_of_keras_network_with_the_strides_moved(resnet50: ResNet) -> None:
    keras_network, generator = keras_network_of_version_one_and_a_half(), np.random.default_rng(0)
    ours = convolutions(resnet50)
    # Keras' convolutions have biases, which the normalisation right after them takes away.
    biases = sum(layer.kernel.shape[-1] for layer in ours.values())
    assert keras_network.count_params() == parameters(resnet50.variables) + biases
    for name, layer in ours.items():
        norm, channels = layer.batch_norm, layer.kernel.shape[-1]
        keras_network.get_layer(f"{name}_conv").set_weights([layer.kernel.numpy(), np.zeros(channels)])
        values = [
            generator.uniform(low, high, channels) for low, high in ((0.5, 1), (-1, 1), (-1, 1), (1, 2))
        ]
        for variable, value in zip(
            (norm.gamma, norm.beta, norm.moving_mean, norm.moving_variance), values, strict=True
        ):
            variable.assign(value)
        keras_network.get_layer(f"{name}_bn").set_weights(values)
    classifier = resnet50.classifier
    keras_network.get_layer("predictions").set_weights([classifier.kernel.numpy(), classifier.bias.numpy()])
    images = generator.uniform(-1, 1, (2, 33, 33, 3)).astype(np.float32)
    logits = resnet50(tf.constant(images), training=False).main.numpy()
    expected = keras_network(images, training=False).numpy()
    assert expected.std() > 0.01
    np.testing.assert_allclose(logits, expected, atol=1e-4 * abs(expected).max())


def test_blocks_start_as_identities(tiny: ResNet) -> None:
    inputs = tf.abs(tf.random.stateless_normal([2, 8, 8, 16], [1, 2]))
    outputs = tiny.blocks[0](inputs, [])
    np.testing.assert_array_equal(outputs, inputs)


@pytest.mark.parametrize("image_size", [17, 28, 32])
def test_small_images_are_halved_five_times_rounding_up(image_size: int) -> None:
    network = ResNet(RESNET18, image_size=image_size, width_multiplier=0.01, num_classes=3)
    features = network.stem(tf.zeros([1, image_size, image_size, 3]), None)
    assert features.shape[1:3] == [-(-image_size // 2)] * 2
    assert network(tf.zeros([1, image_size, image_size, 3]), training=True).main.shape == [1, 3]


def test_images_of_another_size_are_refused(tiny: ResNet) -> None:
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="32"):
        tiny(tf.zeros([1, 31, 31, 3]), training=False)


def test_network_learns_sixteen_pictures(tiny: ResNet) -> None:
    generator = np.random.default_rng(0)
    images = tf.constant(generator.integers(0, 256, (16, 32, 32, 3), dtype=np.uint8))
    labels, losses = tf.range(16) % 4, []
    for step in range(12):
        with tf.GradientTape() as tape:
            outputs = tiny(images, training=True, step=step)
            loss = training_loss(labels, outputs.main, outputs.auxiliary, tiny.regularized_variables)
        losses.append(float(loss))
        gradients = tape.gradient(loss, tiny.trainable_variables)
        for variable, gradient in zip(tiny.trainable_variables, gradients, strict=True):
            variable.assign_sub(0.1 * gradient)
    assert losses[-1] < 0.7 * losses[0], losses
