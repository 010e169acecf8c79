"""Numbers of a whole step are tested with the session; here is what reaches the network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from trainer.device_echo import DeviceEcho
from trainer.models.model import Outputs
from trainer.optimizers import make_optimizer
from trainer.reaugment import reaugment
from trainer.train_options import TrainOptions
from trainer.train_step import TrainStep
from trainer.transfer import HOST


class Seen(tf.Module):
    """Keeps what it is called with."""

    def __init__(self) -> None:
        super().__init__()
        self.kernel = tf.Variable(1.0)
        self.moving_variables: tuple[Any, ...] = ()
        self.regularized_variables = ()
        self.calls: list[tuple[Any, int, int]] = []

    def __call__(self, images: Any, training: bool, step: Any = 0, replica: Any = 0) -> Outputs:
        assert training
        self.calls.append((images.numpy(), int(step), int(replica)))
        return Outputs(self.kernel * tf.zeros([images.shape[0], 3]))


def run(images: Any, step: int = 4, repeat: int = 0, shift: Any = None, **changes: Any) -> Any:
    """Runs one step eagerly; returns the images that the network saw, the loss and the count of steps."""
    options = TrainOptions(
        2, 10, model="resnet18", image_size=32, num_classes=3, examples_per_epoch=4, **changes
    )
    strategy = tf.distribute.OneDeviceStrategy(HOST)
    with strategy.scope():
        model, global_step = Seen(), tf.Variable(step, dtype=tf.int64)
        optimizer = make_optimizer("sgd", model.trainable_variables)
    train = TrainStep(options, strategy, None, model, optimizer, options.schedule, None, global_step)  # type: ignore[arg-type]
    loss = train(tf.constant(images), tf.constant([0, 2]), tf.constant(step, tf.int64),
                 tf.constant(repeat, tf.int64), shift)  # fmt: skip
    ((seen, step_seen, replica),) = model.calls
    assert (step_seen, replica) == (step, 0)
    return seen, float(loss), int(global_step)


PICTURES = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3)).astype(np.uint8)


def test_loss_is_that_of_the_batch_and_the_step_is_counted() -> None:
    seen, loss, steps = run(PICTURES)
    np.testing.assert_array_equal(seen, PICTURES)
    assert loss == pytest.approx(np.log(3), rel=1e-6)
    assert steps == 5


def test_transposed_images_are_turned_back_before_their_colours_are_shifted() -> None:
    shift = np.array([[0.1, 0.0, -0.2], [0.0, 0.3, 0.0]], np.float32)
    seen, _, _ = run(PICTURES.transpose(1, 2, 3, 0), shift=tf.constant(shift), layout="hwcn")
    np.testing.assert_allclose(
        seen, np.clip(2 * (PICTURES / 255.0 + shift[:, None, None]) - 1, -1, 1), atol=1e-6
    )


@pytest.mark.parametrize("repeat", [0, 1, 2])
def test_repeats_are_augmented_anew_and_first_uses_are_not(repeat: int) -> None:
    seen, _, _ = run(PICTURES, repeat=repeat, device_echo=DeviceEcho(reaugment=True, seed=6))
    changed = reaugment(tf.constant(PICTURES), tf.constant([6, 4], tf.int64))
    np.testing.assert_array_equal(seen, changed if repeat else PICTURES)


@pytest.mark.parametrize("replicas", [2, 4])
def test_parts_of_a_batch_are_augmented_as_the_whole_is(replicas: int) -> None:
    images = np.random.default_rng(1).integers(0, 256, (8, 12, 12, 3)).astype(np.uint8)
    key = tf.constant([3, 5], tf.int64)
    parts = [
        reaugment(tf.constant(part), key, replica, replicas)
        for replica, part in enumerate(np.split(images, replicas))
    ]
    np.testing.assert_array_equal(np.concatenate(parts), reaugment(tf.constant(images), key))
