"""The main job with a trainer that takes real batches and paces its steps on paper: the figures are exact."""

import itertools
import time

import numpy as np
import pytest

from bench import run as run_module
from bench.prediction import HostCosts
from bench.run import Run, RunInterruptedError, Terminated
from bench.run_options import RunLimit, RunOptions
from echoing.errors import DataError, OptionError, RecordError
from pipeline.config import PipelineConfig
from pipeline.data_source import open_data_source
from trainer.step import DeviceDescription, StepRecord

WAIT_SECONDS, BUSY_SECONDS = 0.03, 0.01


class PacedTrainer:
    """Eats batches; every step waits for 30 ms and works for 10 ms, in the record only."""

    device = DeviceDescription("pacer", "emulated", step_seconds=BUSY_SECONDS)

    def __init__(self, interrupt=None, after_steps=0):
        self._interrupt = interrupt
        self._after_steps = after_steps

    def steps(self, dataset):
        now = time.monotonic()
        for index, batch in enumerate(dataset.as_numpy_iterator()):
            if self._interrupt is not None and index == self._after_steps:
                raise self._interrupt
            begin, now = now + WAIT_SECONDS, now + WAIT_SECONDS + BUSY_SECONDS
            tags = {name: np.array(value) for name, value in batch.items() if name not in ("image", "label")}
            yield StepRecord(index, begin - (now - 0.04), begin, now, 0.0, len(batch["label"]), tags)


@pytest.fixture
def prepare(monkeypatch, small_data):
    """Returns a function that makes a `Run` with the given trainers, one a phase, and host costs."""

    def prepare(*trainers, data=small_data, costs=None, pipeline=None, **changes):
        made = []

        def make_trainer(options, source):
            made.append(next(remaining))
            if isinstance(made[-1], Exception):
                raise made[-1]
            return made[-1]

        remaining = iter(trainers) if trainers else (PacedTrainer() for _ in itertools.count())
        monkeypatch.setattr(run_module, "make_trainer", make_trainer)
        monkeypatch.setattr(run_module, "measure_host_costs", lambda pipeline: costs)
        values = {
            "batch_size": 4, "image_size": 8, "echo_factor": 2, "seed": 3, "shuffle_buffer_size": 8,
            "keep_tags": True, "stamp_upstream": True,
        }  # fmt: skip
        values |= {"keep_tags": True, "stamp_upstream": True}
        options = RunOptions(
            PipelineConfig(data, **(values | (pipeline or {}))),
            **{"limit": RunLimit(steps=5), "warmup_steps": 1, "trainer": "emulated", **changes},
        )
        return Run(options, open_data_source(data), generated=False, command="pipebench run")

    return prepare


def test_a_run_without_baseline_is_one_phase(prepare, small_data):
    result = prepare(baseline=False, limit=RunLimit(epochs=1)).execute()
    assert result.complete and result.interrupted_by == ""
    assert result.baseline is None and result.prediction is None
    assert result.phase.counts.trained_examples == 16
    assert result.phase.counts.fresh_examples == 8
    assert result.phase.accelerator_utilization == pytest.approx(0.25)
    assert result.phase.throughput.trained_examples_per_second == pytest.approx(100.0)
    assert result.echo == {
        "factor": 2,
        "mean_factor": 2.0,
        "insert_point": "after_augment",
        "shuffle_buffer_size": 8,
    }
    assert result.data["records"] == 8 and result.data["shards"] == 2
    assert result.data["data_dir"] == small_data
    assert result.accelerator["name"] == "pacer" and result.accelerator["batch_size"] == 4
    assert result.config["seed"] == 3
    assert result.command == "pipebench run"


def test_the_baseline_is_the_same_pipeline_without_echo_for_as_many_steps(prepare):
    result = prepare(costs=HostCosts(0.01, 0.0)).execute()
    assert result.baseline.counts.steps == 5
    assert result.baseline.counts.repeated_examples == 0
    assert result.baseline.counts.fresh_examples == 20
    assert result.phase.counts.steps == 5
    assert result.phase.counts.trained_examples == 20
    # Predicted with the device time of the baseline: e = 2, 10 ms upstream, 2.5 ms an example on the device.
    assert result.prediction.trained_examples_per_second == pytest.approx(200.0)
    assert result.prediction.error == pytest.approx(1.0)


def test_a_run_by_time_has_a_baseline_by_time(prepare):
    result = prepare(
        limit=RunLimit(seconds=0.4), baseline_seconds=0.2, warmup_steps=2, warmup_seconds=0.0
    ).execute()
    # The paced clock: 40 ms a step. The limit is met by the tenth measured step, give or take rounding.
    assert 7 <= result.baseline.counts.steps <= 8
    assert 12 <= result.phase.counts.steps <= 13


def test_probes_that_saw_nothing_leave_the_prediction_out(prepare):
    result = prepare(costs=None).execute()
    assert result.baseline is not None and result.prediction is None


@pytest.mark.parametrize(
    "interrupt, exit_code, cause", [(KeyboardInterrupt(), 130, "Ctrl-C"), (Terminated(), 143, "SIGTERM")]
)
def test_an_interrupted_run_keeps_what_was_measured(prepare, interrupt, exit_code, cause):
    run = prepare(PacedTrainer(interrupt, after_steps=3), baseline=False)
    with pytest.raises(RunInterruptedError) as interrupted:
        run.execute()
    result = interrupted.value.result
    assert interrupted.value.exit_code == exit_code
    assert not result.complete and result.interrupted_by == cause
    assert result.phase.counts.steps == 3
    assert result.phase.counts.trained_examples == 12


def test_an_interrupt_in_the_run_keeps_the_baseline(prepare):
    run = prepare(
        PacedTrainer(KeyboardInterrupt(), after_steps=2), PacedTrainer(), costs=HostCosts(0.01, 0.0)
    )
    with pytest.raises(RunInterruptedError) as interrupted:
        run.execute()
    result = interrupted.value.result
    assert result.baseline.counts.steps == 5
    assert result.phase.counts.steps == 2
    assert result.prediction is not None


def test_an_interrupt_in_the_baseline_keeps_the_baselines_steps(prepare):
    run = prepare(PacedTrainer(), PacedTrainer(KeyboardInterrupt(), after_steps=3))
    with pytest.raises(RunInterruptedError) as interrupted:
        run.execute()
    result = interrupted.value.result
    assert result.baseline is not None and result.baseline.counts.steps == 3
    assert result.phase.counts.steps == 0
    assert result.phase.verdict is None
    assert "No verdict" in result.verdict_text


def test_an_interrupt_before_the_baselines_first_step_leaves_it_out(prepare):
    run = prepare(PacedTrainer(), PacedTrainer(KeyboardInterrupt(), after_steps=0))
    with pytest.raises(RunInterruptedError) as interrupted:
        run.execute()
    assert interrupted.value.result.baseline is None


def test_an_option_that_the_trainer_refuses_is_refused_before_the_baseline(prepare):
    run = prepare(OptionError("image_size", 8, "at least 75"), PacedTrainer())
    run._measure_baseline = lambda: pytest.fail("the baseline was measured")
    with pytest.raises(OptionError, match="image_size"):
        run.execute()


def test_too_few_records_are_refused_before_anything_runs(prepare, make_shards, tmp_path):
    data = make_shards(tmp_path / "five", records=5)
    with pytest.raises(DataError, match=r"5 records.*batch 16: no full batch"):
        prepare(data=data, pipeline={"batch_size": 16}, baseline=False).execute()


def test_where_only_the_echo_fills_a_batch_the_run_goes_without_baseline_and_says_so(
    prepare, make_shards, tmp_path
):
    # DP-05: 5 records make no batch of 8, but used twice they make one.
    data = make_shards(tmp_path / "five", records=5)
    result = prepare(data=data, pipeline={"batch_size": 8}, limit=RunLimit(epochs=1)).execute()
    assert result.baseline is None
    assert result.phase.counts.trained_examples == 8
    (warning,) = [text for text in result.warnings if "baseline" in text]
    assert "5 records" in warning and "batch 8" in warning


def test_a_bad_record_is_named_and_the_pipelines_words_are_its_cause(
    prepare, make_record, put_shards, tmp_path
):
    records = [make_record(0), make_record(1, encoded=b"no picture"), make_record(2), make_record(3)]
    data = put_shards(tmp_path / "bad", [records])
    with pytest.raises(RecordError, match="train-00000-of-00001, record 1") as raised:
        prepare(data=data, baseline=False, limit=RunLimit(epochs=1)).execute()
    assert raised.value.__cause__ is not None


def test_skipped_records_are_counted_and_warned_of(prepare, make_record, put_shards, tmp_path):
    records = [make_record(0), make_record(1, encoded=b"no picture"), *(make_record(i) for i in range(2, 9))]
    data = put_shards(tmp_path / "bad", [records])
    result = prepare(
        data=data, baseline=False, limit=RunLimit(epochs=1), pipeline={"on_bad_record": "skip"}
    ).execute()
    assert result.phase.counts.skipped_records == 1
    assert result.data["skipped_records"] == 1
    assert result.phase.counts.fresh_examples == 8
    assert any("1 unusable record" in warning for warning in result.warnings)


@pytest.mark.parametrize("limit", [RunLimit(epochs=1), RunLimit(steps=2)])
def test_where_every_record_is_unusable_the_run_ends_with_an_error(
    prepare, make_record, put_shards, tmp_path, limit
):
    data = put_shards(tmp_path / "bad", [[make_record(i, encoded=b"no picture") for i in range(8)]])
    with pytest.raises(DataError, match="train-00000-of-00001, record 0"):
        prepare(data=data, baseline=False, limit=limit, pipeline={"on_bad_record": "skip"}).execute()


@pytest.mark.parametrize("point", ["after_read", "after_decode", "after_augment", "after_batch"])
def test_at_every_point_an_epoch_trains_each_record_factor_times(prepare, point):
    result = prepare(
        baseline=False, limit=RunLimit(epochs=2), pipeline={"insert_point": point, "echo_factor": 3}
    ).execute()
    assert result.phase.counts.fresh_examples == 16
    assert result.phase.counts.trained_examples == 48


def test_an_error_after_some_steps_keeps_what_was_measured(prepare):
    failing = PacedTrainer(DataError("the loss of step 3 is nan"), after_steps=3)
    with pytest.raises(RunInterruptedError) as ended:
        prepare(failing, baseline=False, limit=RunLimit(steps=5)).execute()
    assert ended.value.exit_code == 2
    assert ended.value.result.interrupted_by == "the loss of step 3 is nan"
    assert not ended.value.result.complete
    assert ended.value.result.phase.counts.steps == 3


def test_an_error_before_the_first_step_is_the_error_itself(prepare):
    failing = PacedTrainer(DataError("no record"))
    with pytest.raises(DataError, match="no record"):
        prepare(failing, baseline=False).execute()
