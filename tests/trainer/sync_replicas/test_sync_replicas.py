"""Synchronous training on threads: what is trained, how it ends, and TensorFlow's optimizer as the oracle."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading

import numpy as np
import pytest
import tensorflow as tf

from echoing.errors import DataError, OptionError
from trainer.learning_rate import LearningRateSchedule
from trainer.moving_average import MovingAverage
from trainer.optimizers import GradientDescent, Momentum
from trainer.sync_replicas import ReplicaPlan, ReplicasStalledError, SyncReplicas

FEATURES, EXAMPLES, STEPS = 3, 8, 12


def regression(batches):
    """Returns inputs `[batches, EXAMPLES, FEATURES]` and targets of a linear regression, float32."""
    draws = np.random.default_rng(5)
    inputs = draws.normal(size=(batches, EXAMPLES, FEATURES)).astype(np.float32)
    return inputs, (inputs @ [1.0, -2.0, 0.5] + 3).astype(np.float32)


def large_batch_descent(inputs, targets, batches_a_step, steps, rate):
    """Returns weights and bias after gradient descent in float64, a step's batches joined to one."""
    weights, bias = np.zeros(FEATURES), 0.0
    for step in range(steps):
        of_step = slice(step * batches_a_step, (step + 1) * batches_a_step)
        x, y = inputs[of_step].reshape(-1, FEATURES).astype(np.float64), targets[of_step].reshape(-1)
        error = x @ weights + bias - y
        weights -= rate * 2 * (error[:, None] * x).mean(0)
        bias -= rate * 2 * error.mean()
    return np.append(weights, bias)


def descend(plan, batch_index, rate=0.1, steps=STEPS):
    """Trains on threads; `batch_index(replica, nth)` tells which batch is a replica's nth."""
    inputs, targets = regression(plan.replicas_to_aggregate * steps)
    weights, bias = tf.Variable(tf.zeros([FEATURES])), tf.Variable(0.0)

    @tf.function
    def gradients_of(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.linalg.matvec(x, weights) + bias - y) ** 2)
        return tape.gradient(loss, [weights, bias])

    def replica(number):
        nth = itertools.count()

        def gradients(step):
            index = batch_index(number, next(nth))
            return gradients_of(inputs[index], targets[index])

        return gradients

    trainer = SyncReplicas(plan, [weights, bias], GradientDescent([weights, bias]), rate)
    report = trainer.run([replica(number) for number in range(plan.replicas)], steps)
    expected = large_batch_descent(inputs, targets, plan.replicas_to_aggregate, steps, rate)
    return np.append(weights.numpy(), bias.numpy()), expected, report, trainer


def test_four_of_four_equal_descent_on_their_batches_together():
    trained, expected, report, trainer = descend(ReplicaPlan(4), lambda replica, nth: 4 * nth + replica)
    np.testing.assert_allclose(trained, expected, rtol=1e-5)
    assert int(trainer.global_step.numpy()) == report.updates == STEPS
    assert [counts.accepted for counts in report.replicas] == [STEPS] * 4
    assert report.dropped == report.stale_tokens == 0


def test_two_replicas_with_their_own_tokens_equal_descent_on_four_batches():
    trained, expected, report, _ = descend(
        ReplicaPlan(4, 2, tokens="own"), lambda replica, nth: 4 * (nth // 2) + 2 * replica + nth % 2
    )
    np.testing.assert_allclose(trained, expected, rtol=1e-5)
    assert [counts.accepted for counts in report.replicas] == [2 * STEPS] * 2


def test_two_replicas_that_share_tokens_and_data_equal_descent_on_four_batches():
    order, lock = itertools.count(), threading.Lock()

    def next_batch(replica, nth):
        with lock:
            return next(order)

    trained, expected, report, _ = descend(ReplicaPlan(4, 2), next_batch)
    np.testing.assert_allclose(trained, expected, rtol=1e-5)
    assert report.accepted == 4 * STEPS
    assert report.dropped == report.stale_tokens == 0


def one_weight(plan, optimizer=GradientDescent, rate=1.0, **options):
    weight = tf.Variable(0.0)
    return weight, SyncReplicas(plan, [weight], optimizer([weight]), rate, **options)


def constant(value):
    return lambda step: [tf.constant(value)]


def test_learning_rate_is_that_of_the_step_before_it_moves():
    schedule = LearningRateSchedule(batch_size=256, examples_per_epoch=256, rate_per_256=1.0, decay=0.5,
                                    decay_epochs=1)  # fmt: skip
    weight, trainer = one_weight(ReplicaPlan(1), rate=schedule)
    trainer.run([constant(-1.0)], 3)
    assert weight.numpy() == 1.0 + 0.5 + 0.25


def test_averages_take_in_each_update_once_after_the_step_moved():
    weight = tf.Variable(0.0)
    step = tf.Variable(0, dtype=tf.int64)
    averages = MovingAverage([weight], decay=0.9, num_updates=step)
    trainer = SyncReplicas(
        ReplicaPlan(2), [weight], GradientDescent([weight]), 1.0, averages=averages, global_step=step
    )
    trainer.run([constant(-1.0), constant(-3.0)], 3)
    shadow = 0.0
    for update, value in [(1, 2.0), (2, 4.0), (3, 6.0)]:
        decay = min(0.9, (1 + update) / (10 + update))
        shadow -= (1 - decay) * (shadow - value)
    assert averages.average(weight).numpy() == pytest.approx(shadow, rel=1e-6)


def test_a_second_run_goes_on_where_the_first_ended():
    weight, trainer = one_weight(ReplicaPlan(2))
    steps: list[int] = []
    trainer.run([constant(-1.0)] * 2, 2)

    def seen(step):
        steps.append(step)
        return [tf.constant(-1.0)]

    report = trainer.run([seen, constant(-1.0)], 3)
    assert steps == [2, 3, 4]
    assert report.updates == 3
    assert int(trainer.global_step.numpy()) == weight.numpy() == 5


def test_a_restored_global_step_is_where_it_begins():
    step = tf.Variable(41, dtype=tf.int64)
    weight, trainer = one_weight(ReplicaPlan(1), global_step=step)
    report = trainer.run([constant(-1.0)], 1)
    assert (report.accepted, report.dropped) == (1, 0)
    assert step.numpy() == 42
    assert weight.numpy() == 1


def broken(step):
    if step == 2:
        raise KeyError("broken")
    return [tf.constant(-1.0)]


@pytest.mark.parametrize("tokens", ["own", "shared"])
def test_an_error_in_one_replica_ends_all_and_is_raised(tokens):
    weight, trainer = one_weight(ReplicaPlan(3, tokens=tokens))
    with pytest.raises(KeyError, match="broken"):
        trainer.run([constant(-1.0), broken, broken], 1000)
    # The updates before it stand, and none came after it.
    assert weight.numpy() == int(trainer.global_step.numpy()) == 2


def test_an_error_of_the_optimizer_is_raised():
    class Refuses(GradientDescent):
        def apply(self, gradients, learning_rate):
            raise ValueError("not today")

    _, trainer = one_weight(ReplicaPlan(2), optimizer=Refuses)
    with pytest.raises(ValueError, match="not today"):
        trainer.run([constant(1.0)] * 2, 5)


def test_an_error_of_the_observer_is_raised():
    _, trainer = one_weight(ReplicaPlan(2))

    def observe(push):
        raise LookupError("observer")

    with pytest.raises(LookupError, match="observer"):
        trainer.run([constant(1.0)] * 2, 5, on_push=observe)


def test_a_gradient_of_another_shape_is_raised_in_the_caller():
    _, trainer = one_weight(ReplicaPlan(2))
    with pytest.raises(OptionError, match="gradient of"):
        trainer.run([constant(1.0), lambda step: [tf.zeros([2])]], 5)


@pytest.mark.parametrize("dataset", [False, True])
def test_data_that_ends_is_named(dataset):
    batches = iter(tf.data.Dataset.range(2)) if dataset else iter(range(2))

    def gradients(step):
        batch = batches.get_next() if dataset else next(batches)
        return [tf.cast(batch, tf.float32)]

    _, trainer = one_weight(ReplicaPlan(2))
    with pytest.raises(DataError, match="data of replica 1 ended at step 2, and 9 are asked for"):
        trainer.run([constant(1.0), gradients], 9)


def test_a_replica_that_hangs_is_named_when_the_time_is_over():
    hang = threading.Event()

    def stuck(step):
        hang.wait(60)
        return [tf.constant(-1.0)]

    weight, trainer = one_weight(ReplicaPlan(3))
    try:
        with pytest.raises(ReplicasStalledError, match=r"of 3 gradients of step 0 have come; .* 2\."):
            trainer.run(
                [constant(-1.0), constant(-1.0), stuck], 5, step_timeout_seconds=0.5, stop_timeout_seconds=0
            )
    finally:
        hang.set()
    join_replicas()
    # What comes back after the end trains nothing.
    assert weight.numpy() == int(trainer.global_step.numpy()) == 0


def test_a_backup_that_hangs_is_left_behind_with_a_warning(caplog):
    hang = threading.Event()

    def stuck(step):
        hang.wait(60)
        return [tf.constant(-1.0)]

    weight, trainer = one_weight(ReplicaPlan(2, 3))
    try:
        report = trainer.run([constant(-1.0), stuck, constant(-1.0)], 4, stop_timeout_seconds=0.5)
    finally:
        hang.set()
    join_replicas()
    assert 1 in report.left_behind
    assert "Replica 1 did not come back" in caplog.text
    assert report.replicas[1].batches == 0
    assert weight.numpy() == report.updates == 4


def join_replicas():
    """Waits for the threads that a test let hang."""
    for thread in threading.enumerate():
        if thread.name.startswith("pipebench-replica"):
            thread.join(60)


def test_arguments_out_of_range_are_refused():
    weight, trainer = one_weight(ReplicaPlan(2))
    with pytest.raises(OptionError, match="number of gradient functions is 1, but must be 2"):
        trainer.run([constant(1.0)], 1)
    for steps, *limits in ((0,), (1, None, 0), (1, None, 1, -1)):
        with pytest.raises(OptionError):
            trainer.run([constant(1.0)] * 2, steps, *limits)
    with pytest.raises(OptionError, match="variables"):
        SyncReplicas(ReplicaPlan(2), [], GradientDescent([]), 1.0)
    half = tf.Variable(tf.zeros([], tf.bfloat16), name="half")
    with pytest.raises(OptionError, match="dtype of half:0 is 'bfloat16'"):
        SyncReplicas(ReplicaPlan(2), [half], GradientDescent([half]), 1.0)
    with pytest.raises(OptionError, match="learning_rate"):
        SyncReplicas(ReplicaPlan(2), [weight], GradientDescent([weight]), 0.0)


ORACLE = """
import json, sys
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)
aggregate, steps = int(sys.argv[1]), int(sys.argv[2])
server = tf.train.Server.create_local_server()
step = tf.train.get_or_create_global_step()
weight = tf.get_variable("weight", initializer=[0.0, 0.0])
fed = tf.placeholder(tf.float32, [2])
average = tf.train.ExponentialMovingAverage(0.9)
inner = tf.train.MomentumOptimizer(0.5, 0.9)
optimizer = tf.train.SyncReplicasOptimizer(
    inner, aggregate, 1, variable_averages=average, variables_to_average=[weight]
)
train = optimizer.apply_gradients([(fed, weight)], global_step=step)
hook = optimizer.make_session_run_hook(True, num_tokens=aggregate - 1)
batches = 0
with tf.train.MonitoredTrainingSession(
    server.target, is_chief=True, hooks=[hook], stop_grace_period_secs=3
) as session:
    while batches < aggregate * steps:
        session.run(train, {fed: [np.float32(batches % 5), np.float32(batches % 3)]})
        batches += 1
    # The last run waited for a token of the last update; the averages come right after the tokens.
    import time
    time.sleep(1)
    values = session.run([weight, average.average(weight), step])
print("RESULT", json.dumps([np.asarray(value).tolist() for value in values]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("aggregate", [1, 3])
def test_one_replica_trains_as_with_the_optimizer_of_tensorflow_1(aggregate, tmp_path):
    steps = 6
    script = tmp_path / "oracle.py"
    script.write_text(ORACLE)
    done = subprocess.run(
        [sys.executable, str(script), str(aggregate), str(steps)],
        capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert lines, done.stderr
    weight_of_oracle, average_of_oracle, step_of_oracle = json.loads(lines[0].removeprefix("RESULT "))

    weight = tf.Variable([0.0, 0.0])
    averages = MovingAverage([weight], decay=0.9)
    trainer = SyncReplicas(
        ReplicaPlan(aggregate, 1), [weight], Momentum([weight], momentum=0.9), 0.5, averages=averages
    )
    batches = itertools.count()

    def gradients(step):
        batch = next(batches)
        return [np.float32([batch % 5, batch % 3])]

    trainer.run([gradients], steps)
    assert step_of_oracle == int(trainer.global_step.numpy()) == steps
    np.testing.assert_allclose(weight.numpy(), weight_of_oracle, rtol=1e-6)
    np.testing.assert_allclose(averages.average(weight).numpy(), average_of_oracle, rtol=1e-6)
