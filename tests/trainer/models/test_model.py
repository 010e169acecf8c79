from __future__ import annotations

import subprocess
import sys

import pytest
import tensorflow as tf

from trainer.models.batch_norm import BatchNorm, Moments
from trainer.models.model import average_moments, update_moments


def moments_of(value: float) -> Moments:
    return Moments(BatchNorm(2, "n"), tf.constant([value, 0.0]), tf.constant([1.0, 1.0]))


def test_update_moves_the_averages_of_every_batch_normalisation() -> None:
    measured = [moments_of(1.0), moments_of(2.0)]
    update_moments(measured)
    moved = [float(moments.batch_norm.moving_mean[0]) for moments in measured]
    assert moved == pytest.approx([0.004, 0.008])


def test_one_replica_keeps_its_moments() -> None:
    measured = moments_of(3.0)
    assert average_moments([measured]) == (measured,)
    assert average_moments([]) == ()


def test_averaging_outside_of_a_replica_is_refused() -> None:
    with (
        tf.distribute.OneDeviceStrategy("CPU:0").scope(),
        pytest.raises(RuntimeError, match=r"strategy\.run"),
    ):
        average_moments([moments_of(1.0)])


TWO_REPLICAS = """
import numpy as np
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from trainer.losses import training_loss
from trainer.models.layers import Classifier
from trainer.models.model import average_moments, update_moments
from trainer.models.registry import make_model

def make():
    return make_model("resnet18", image_size=17, width_multiplier=0.01, num_classes=3, seed=4)

alone = make()
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
with strategy.scope():
    model, dropping = make(), Classifier(64, 64, "l", seed=0, keep_rate=0.5)
dropping.kernel.assign(tf.eye(64))
images = np.random.default_rng(0).uniform(-1, 1, (8, 17, 17, 3)).astype(np.float32)
images[4:] += 1  # halves whose moments differ
labels = np.arange(8) % 3

def replica_step(images, labels):
    context = tf.distribute.get_replica_context()
    replica = context.replica_id_in_sync_group
    with tf.GradientTape() as tape:
        outputs = model(images, training=True, step=7, replica=replica)
        loss = training_loss(labels, outputs.main, outputs.auxiliary, model.regularized_variables)
    variables = model.trainable_variables
    gradients = context.all_reduce(tf.distribute.ReduceOp.MEAN, tape.gradient(loss, variables))
    for variable, gradient in zip(variables, gradients):
        variable.assign_sub(0.1 * gradient)
    update_moments(average_moments(outputs.moments))
    return outputs.main, dropping(tf.ones([1, 1, 1, 64]), True, 7, replica)

@tf.function(autograph=False)
def step(images, labels):
    def part(values):
        halves = tf.split(values, 2)
        return strategy.experimental_distribute_values_from_function(
            lambda context: halves[context.replica_id_in_sync_group]
        )
    logits, dropped = strategy.run(replica_step, (part(images), part(labels)))
    return strategy.experimental_local_results(logits), strategy.experimental_local_results(dropped)

assert [v.name for v in model.variables] == [v.name for v in alone.variables]
halves = [alone(half, training=True) for half in np.split(images, 2)]
logits, dropped = step(tf.constant(images), tf.constant(labels))
for half, values in zip(halves, logits):
    np.testing.assert_allclose(values, half.main, rtol=1e-4, atol=1e-5)
assert not np.array_equal(*dropped)
for variable in model.variables:
    first, second = (copy.numpy() for copy in strategy.experimental_local_results(variable))
    assert np.array_equal(first, second), variable.name
by_name = {v.name: v.numpy() for v in model.moving_variables}
assert len(by_name) == 2 * len(halves[0].moments) == 40
for one, other in zip(halves[0].moments, halves[1].moments):
    norm = one.batch_norm
    mean = 0.004 * (one.mean.numpy() + other.mean.numpy()) / 2
    variance = 0.996 + 0.004 * (one.variance.numpy() + other.variance.numpy()) / 2
    np.testing.assert_allclose(by_name[norm.moving_mean.name], mean, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(by_name[norm.moving_variance.name], variance, rtol=1e-5)
start = {v.name: v.numpy() for v in alone.trainable_variables}
moved = [v.name for v in model.trainable_variables if not np.array_equal(v.numpy(), start[v.name])]
assert {"Conv1/weights:0", "Stage4/Block2/Conv2/BatchNorm/gamma:0", "Logits/weights:0"} <= set(moved)
"""


@pytest.mark.slow
def test_two_replicas_drop_other_features_and_keep_equal_weights_and_mean_moments() -> None:
    done = subprocess.run([sys.executable, "-c", TWO_REPLICAS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
