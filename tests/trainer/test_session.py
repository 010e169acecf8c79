"""On one device, with a tiny network; `test_session_replicas` has several devices and workers."""

from __future__ import annotations

import dataclasses
import importlib.util
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from echoing.errors import DataError, OptionError, PipebenchError
from trainer.placement import Placement
from trainer.session import TrainEnd, TrainSession
from trainer.step import StepRecord
from trainer.strategies import StrategyOptions, make_strategy

_spec = importlib.util.spec_from_file_location("session_job", Path(__file__).with_name("session_job.py"))
assert _spec is not None and _spec.loader is not None
job: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(job)


@pytest.fixture(scope="module")
def placement() -> Placement:
    return make_strategy(StrategyOptions("cpu"))


@pytest.fixture(scope="module", autouse=True)
def tiny() -> Iterator[None]:
    with job.tiny_network():
        yield


@pytest.fixture
def session(placement: Placement) -> TrainSession:
    return TrainSession(job.options(), placement)


def train(session: TrainSession, dataset: Any, until: int) -> tuple[TrainEnd, list[StepRecord]]:
    records: list[StepRecord] = []
    return session.train(session.open(dataset), until, records.extend), records


def everything(session: TrainSession) -> list[Any]:
    assert session.average is not None
    variables = (*session.model.trainable_variables, *session.optimizer.variables, *session.average.variables)
    return [variable.numpy().copy() for variable in variables]


@pytest.mark.parametrize(("layout", "uses"), [("nhwc", ()), ("hwcn", (1, 3, 2, 1, 2, 1))])
def test_first_step_is_that_of_numpy(placement: Placement, layout: str, uses: tuple[int, ...]) -> None:
    """One step of plain gradient descent on a linear network, written out."""

    class Linear(job.TinyNetwork):  # type: ignore[misc, name-defined]
        def __call__(self, images: Any, training: bool, step: Any = 0, replica: Any = 0) -> Any:
            logits = tf.reduce_mean(images[..., :1], [1, 2]) @ self.dense[:1] + 0 * tf.reduce_sum(self.kernel)
            return job.Outputs(logits + self.bias, None, ())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trainer.session.make_model", lambda name, **k: Linear(job.CLASSES, k["seed"]))
        changes = job.options(optimizer="sgd", learning_rate=16.0, weight_decay=0.01, layout=layout)
        session = TrainSession(changes, placement)
    dense = session.model.dense.numpy().astype(np.float64)  # type: ignore[attr-defined]
    kernel = session.model.kernel.numpy().astype(np.float64)  # type: ignore[attr-defined]
    _, (record,) = train(session, job.batches(placement, uses, layout=layout), 1)

    data = job.examples(job.BATCH_SIZE * job.BATCHES)
    features = data["image"][: job.BATCH_SIZE, :, :, 0].astype(np.float64).mean(axis=(1, 2))[:, None]
    targets = np.eye(job.CLASSES)[data["label"][: job.BATCH_SIZE]] * 0.9 + 0.1 / job.CLASSES
    logits = features @ dense[:1]
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    penalty = 0.01 * ((dense**2).sum() + (kernel**2).sum()) / 2
    loss = -(targets * np.log(shares)).sum(axis=1).mean() + penalty
    gradient = 0.01 * dense
    gradient[:1] += features.T @ (shares - targets) / job.BATCH_SIZE
    assert record.loss == pytest.approx(loss, rel=1e-5)
    expected = dense - 1.0 * gradient  # 16 for 256 examples are 1 for a batch of 16
    np.testing.assert_allclose(session.model.dense.numpy(), expected, rtol=1e-4, atol=1e-6)  # type: ignore[attr-defined]
    assert session.average is not None
    # The global step is 1 when the average moves: a decay of min(0.995, 2 / 11).
    shadow = dense + (1 - 2 / 11) * (expected - dense)
    np.testing.assert_allclose(
        session.average.average(session.model.dense).numpy(),  # type: ignore[attr-defined]
        shadow,
        rtol=1e-4,
        atol=1e-6,
    )


def test_steps_are_done_up_to_the_number_asked_for_and_no_further(
    session: TrainSession, placement: Any
) -> None:
    batches = session.open(job.batches(placement))
    calls: list[list[int]] = []

    def on_steps(records: Any) -> None:
        calls.append([record.index for record in records])

    for until, total in ((3, 3), (3, 3), (2, 3), (10, 10)):
        assert session.train(batches, until, on_steps) is TrainEnd.STEP_REACHED
        assert session.step == total
    assert [index for call in calls for index in call] == list(range(10))
    assert max(map(len, calls)) <= session.options.steps_per_loop
    assert batches.position == {"batch": 10, "uses": 0}


def test_training_stops_after_the_steps_that_are_answered_with_true(
    session: TrainSession, placement: Any
) -> None:
    batches = session.open(job.batches(placement))
    end = session.train(batches, 50, lambda records: records[-1].index >= 4)
    assert end is TrainEnd.STOPPED
    assert 5 <= session.step < 5 + session.options.steps_per_loop
    assert session.train(batches, 12, lambda records: None) is TrainEnd.STEP_REACHED
    assert session.step == 12


def test_end_of_the_data_is_told_and_no_step_is_made_up(session: TrainSession, placement: Any) -> None:
    end, records = train(session, job.batches(placement).take(5), 50)
    assert (end, len(records), session.step) == (TrainEnd.DATA_ENDED, 5, 5)


def test_pauses_change_nothing(placement: Any) -> None:
    weights = []
    for stops in ((8,), (1, 2, 5, 8)):
        session = TrainSession(job.options(), placement)
        batches = session.open(job.batches(placement, job.USES))
        for stop in stops:
            session.train(batches, stop, lambda records: None)
            session.evaluate(job.evaluation_data(placement, 10, 4), average=True)
        weights.append(everything(session))
    for once, often in zip(*weights, strict=True):
        np.testing.assert_array_equal(once, often)


def test_loss_that_is_not_finite_stops_with_its_step_and_its_record_is_left_out(placement: Any) -> None:
    session = TrainSession(job.options(learning_rate=1e30, optimizer="sgd"), placement)
    records: list[StepRecord] = []
    batches = session.open(job.batches(placement))
    with pytest.raises(
        PipebenchError, match=r"The loss of step ([2-9]) is (nan|inf): training stopped"
    ) as error:
        session.train(batches, 20, records.extend)
    assert f"step {len(records) + 1} is" in str(error.value)
    assert all(math.isfinite(record.loss or math.nan) for record in records)
    with pytest.raises(PipebenchError, match="not finite"):
        session.check_finite()


def test_finite_variables_pass_the_check_and_others_are_named(session: TrainSession) -> None:
    session.check_finite()
    session.model.dense.assign(np.full((4, job.CLASSES), np.inf, np.float32))  # type: ignore[attr-defined]
    with pytest.raises(PipebenchError, match="After step 0 the variable dense/weights:0 is not finite"):
        session.check_finite()


@pytest.mark.parametrize("bad", [-1, job.CLASSES])
def test_label_outside_the_range_stops_before_its_step(
    session: TrainSession, placement: Any, bad: int
) -> None:
    def spoil(index: Any, batch: Any) -> Any:
        return batch | {"label": tf.where(index == 2, bad, batch["label"])}

    dataset = job.batches(placement).enumerate().map(spoil)
    records: list[StepRecord] = []
    batches = session.open(dataset)
    with pytest.raises(DataError, match=rf"batch of step 3 has labels outside 0 to 6 .*: {bad}\."):
        session.train(batches, 10, records.extend)
    assert (len(records), session.step) == (2, 2)


def test_evaluation_puts_the_weights_back_also_when_it_fails(session: TrainSession, placement: Any) -> None:
    train(session, job.batches(placement), 5)
    before = everything(session)
    good = job.evaluation_data(placement, 20, 8)
    raw, average = session.evaluate(good), session.evaluate(good, average=True)
    assert (raw.weights, average.weights) == ("raw", "average")
    assert raw.mean_loss != average.mean_loss
    with pytest.raises(DataError, match="labels outside 0 to 6"):
        session.evaluate(good.concatenate(good.map(lambda e: e | {"label": e["label"] + 7})), average=True)
    for earlier, later in zip(before, everything(session), strict=True):
        np.testing.assert_array_equal(earlier, later)


def test_evaluation_with_averages_that_were_not_kept_is_refused(placement: Any) -> None:
    session = TrainSession(job.options(moving_average=False), placement)
    assert "average" not in session.state
    train(session, job.batches(placement), 2)
    data = job.evaluation_data(placement, 9, 4)
    assert session.evaluate(data).examples == 9
    with pytest.raises(OptionError, match="moving_average is False"):
        session.evaluate(data, average=True)


def test_evaluation_without_examples_is_refused(session: TrainSession, placement: Any) -> None:
    with pytest.raises(DataError, match="no examples"):
        session.evaluate(job.evaluation_data(placement, 9, 4).take(0))


def test_state_is_all_that_another_session_needs(
    session: TrainSession, placement: Any, tmp_path: Any
) -> None:
    train(session, job.batches(placement), 4)
    path = tf.train.Checkpoint(**session.state).write(str(tmp_path / "model"))
    other = TrainSession(job.options(seed=99), placement)
    tf.train.Checkpoint(**other.state).read(path).assert_consumed()
    assert other.step == 4
    for ours, theirs in zip(everything(session), everything(other), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    rest = job.batches(placement, first=4)
    losses = [[record.loss for record in train(each, rest, 6)[1]] for each in (session, other)]
    assert losses[0] == losses[1] and len(losses[0]) == 2


def test_input_that_was_opened_before_another_is_refused(session: TrainSession, placement: Any) -> None:
    first = session.open(job.batches(placement))
    session.open(job.batches(placement))
    with pytest.raises(RuntimeError, match="open it again"):
        session.train(first, 1, lambda records: None)


def test_uses_that_the_next_batch_does_not_have_are_refused(session: TrainSession, placement: Any) -> None:
    batches = session.open(job.batches(placement, job.USES), uses=1)
    with pytest.raises(DataError, match="batch of step 1 is to be used 1 times, but the run that this one"):
        session.train(batches, 5, lambda records: None)


def test_batches_of_another_size_than_the_one_asked_for_are_refused(placement: Any) -> None:
    session = TrainSession(job.options(batch_size=12), placement)
    with pytest.raises(OptionError, match="batch_size is 12, but must be 16 x 1"):
        session.open(job.batches(placement))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch_size": 20}, "batch_size is 20.*nearest: 16 or 24"),
        ({"eval_batch_size": 100}, "eval_batch_size is 100.*nearest: 96 or 104"),
        ({"jit_compile": True}, "jit_compile is True.*8 replicas"),
    ],
)
def test_options_that_eight_replicas_cannot_follow_are_refused_before_anything_is_built(
    placement: Any, changes: dict[str, Any], message: str
) -> None:
    eight = dataclasses.replace(placement, strategy=None, replicas=8, local_replicas=8)
    with pytest.raises(OptionError, match=message):
        TrainSession(job.options(**changes), eight)


def test_device_says_what_it_trains(session: TrainSession) -> None:
    assert (session.device.name, session.device.model) == ("CPU", "resnet18 (width 1, 32 px)")


@pytest.mark.slow
def test_step_compiled_with_xla_gives_the_same_losses(placement: Any) -> None:
    losses = []
    for jit_compile in (False, True):
        session = TrainSession(job.options(jit_compile=jit_compile), placement)
        _, records = train(session, job.batches(placement, job.USES), 6)
        data = job.evaluation_data(placement, 21, 8)
        losses.append([*(record.loss for record in records), session.evaluate(data).mean_loss])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
