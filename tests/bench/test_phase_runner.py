from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.phase_runner import TIMELINE_STEPS, PhaseRunner
from bench.run_options import RunLimit
from profiling.step_meter import WarmUp
from trainer.step import StepRecord

START_SECONDS = 100.0
WALL_SECONDS = 5000.0


class ScriptedPipeline:
    """Stands for an input pipeline: gives a token instead of a dataset."""

    def __init__(self, batches_per_epoch=None, skipped=None):
        self._batches_per_epoch = batches_per_epoch
        self.skip_counter = None if skipped is None else SimpleNamespace(count=skipped)
        self.example_shuffle_size = 1000
        self.source = SimpleNamespace(records=None)
        self.config = SimpleNamespace(batch_shuffle_buffer_size=0, batch_size=2)

    def __call__(self):
        return "the dataset"

    def steps_in(self, epochs):
        return None if self._batches_per_epoch is None else self._batches_per_epoch * epochs


class ScriptedTrainer:
    """Yields given records, then ends or raises; notes what it was fed and whether it was closed."""

    def __init__(self, records, error=None):
        self._records = records
        self._error = error
        self.dataset = None
        self.yielded = 0
        self.closed = False

    def steps(self, dataset):
        self.dataset = dataset
        try:
            for record in self._records:
                self.yielded += 1
                yield record
            if self._error is not None:
                raise self._error
        finally:
            self.closed = True


def step(
    index,
    end,
    wait=0.25,
    busy=0.75,
    repeat_index=(0, 0),
    ready=None,
    transfer=0.125,
    loss=None,
    ids=None,
    device_repeat=0,
):
    """A step that ends `end` seconds after the phase began."""
    end_seconds = START_SECONDS + end
    size = len(repeat_index)
    tags = {
        "repeat_index": np.array(repeat_index, np.int64),
        "example_id": np.array(range(index * size, (index + 1) * size) if ids is None else ids, np.int64),
    }
    if ready is not None:
        tags["upstream_ready_seconds"] = WALL_SECONDS + np.array(ready, np.float64)
    return StepRecord(
        index, wait, end_seconds - busy, end_seconds, transfer, size, tags, loss, device_repeat=device_repeat
    )


def steps_of_a_second(count, **values):
    return [step(index, index + 1.0, **values) for index in range(count)]


def runner_of(records, limit=None, warm_up=None, pipeline=None, error=None):
    trainer = ScriptedTrainer(records, error)
    runner = PhaseRunner(
        pipeline or ScriptedPipeline(),
        trainer,
        limit or RunLimit(epochs=1),
        warm_up or WarmUp(steps=1),
        clock=lambda: START_SECONDS,
        wall_clock=lambda: WALL_SECONDS,
    )
    return runner, trainer


def run(records, **options):
    runner, _ = runner_of(records, **options)
    runner.run()
    return runner.phase()


def test_a_steps_limit_ends_after_exactly_so_many_and_asks_for_no_more():
    runner, trainer = runner_of(steps_of_a_second(10), limit=RunLimit(steps=4))
    runner.run()
    assert runner.phase().counts.steps == 4
    assert trainer.yielded == 4
    assert trainer.closed
    assert trainer.dataset == "the dataset"


def test_a_seconds_limit_counts_from_the_end_of_the_warm_up():
    runner, trainer = runner_of(steps_of_a_second(20), limit=RunLimit(seconds=3.0))
    runner.run()
    phase = runner.phase()
    # One warm-up step of a second, then the three measured seconds are three steps and not two or four.
    assert phase.counts.steps == 4
    assert phase.counts.measured_steps == 3
    assert phase.throughput.measured_seconds == 3.0
    assert phase.steps.warm_up == [True, False, False, False]
    assert trainer.yielded == 4


def test_a_seconds_limit_that_no_step_meets_exactly_ends_after_the_step_that_passes_it():
    phase = run(steps_of_a_second(20), limit=RunLimit(seconds=2.5))
    assert phase.counts.measured_steps == 3


def test_a_seconds_limit_shorter_than_a_step_still_measures_one_step():
    phase = run(steps_of_a_second(20), limit=RunLimit(seconds=0.001))
    assert phase.counts.steps == 2
    assert phase.counts.measured_steps == 1


def test_warm_up_lasts_for_the_longer_of_its_steps_and_seconds():
    by_seconds = run(steps_of_a_second(20), limit=RunLimit(seconds=2.0), warm_up=WarmUp(steps=2, seconds=5.0))
    assert by_seconds.throughput.warm_up_steps == 5
    assert by_seconds.counts.steps == 7
    by_steps = run(steps_of_a_second(20), limit=RunLimit(seconds=2.0), warm_up=WarmUp(steps=6, seconds=5.0))
    assert by_steps.throughput.warm_up_steps == 6
    assert by_steps.counts.steps == 8


def test_an_epochs_limit_ends_with_the_data():
    phase = run(steps_of_a_second(5), limit=RunLimit(epochs=2), pipeline=ScriptedPipeline(2))
    assert phase.counts.steps == 5


def test_data_that_ends_before_the_steps_limit_ends_the_phase():
    phase = run(steps_of_a_second(3), limit=RunLimit(steps=10))
    assert phase.counts.steps == 3


def test_fresh_examples_are_those_with_repeat_index_zero():
    phase = run([step(0, 1.0, repeat_index=(0, 1, 0, 2)), step(1, 2.0, repeat_index=(1, 1, 0, 3))])
    assert phase.steps.fresh_examples == [2, 1]
    assert phase.steps.trained_examples == [4, 4]
    assert phase.counts.fresh_examples == 3
    assert phase.counts.repeated_examples == 5
    assert phase.counts.trained_examples == 8


def test_counts_cover_the_warm_up_and_rates_do_not():
    # Three warm-up steps of 2 fresh examples, then two steps, a second each, of 1 fresh and 1 repeat.
    records = [*steps_of_a_second(3), step(3, 4.0, repeat_index=(0, 1)), step(4, 5.0, repeat_index=(1, 0))]
    phase = run(records, warm_up=WarmUp(steps=3))
    assert phase.counts.fresh_examples == 8
    assert phase.counts.trained_examples == 10
    assert phase.throughput.warm_up_steps == 3
    assert phase.throughput.measured_seconds == 2.0
    assert phase.throughput.trained_examples_per_second == 2.0
    assert phase.throughput.fresh_examples_per_second == 1.0


def test_a_long_first_wait_is_in_no_figure():
    records = [step(0, 61.0, wait=60.0, busy=1.0)] + [
        step(index, 61.0 + index, wait=0.1, busy=0.9) for index in range(1, 6)
    ]
    phase = run(records)
    assert phase.accelerator_utilization == pytest.approx(0.9)
    assert phase.verdict == "moderately host-bound"
    assert phase.throughput.trained_examples_per_second == pytest.approx(2.0)
    assert phase.steps.wait_seconds[0] == 60.0


def test_columns_are_seconds_since_the_phase_began():
    phase = run([step(0, 1.0, loss=6.5), step(1, 2.5, wait=0.5, busy=1.0, transfer=0.25)])
    assert phase.steps.start_seconds == [0.25, 1.5]
    assert phase.steps.end_seconds == [1.0, 2.5]
    assert phase.steps.wait_seconds == [0.25, 0.5]
    assert phase.steps.transfer_seconds == [0.125, 0.25]
    assert phase.steps.loss == [6.5, None]


def test_a_phase_without_steps_has_no_rates_and_no_verdict():
    phase = run([])
    assert phase.counts.steps == 0
    assert phase.verdict is None
    assert phase.accelerator_utilization is None
    assert phase.throughput.trained_examples_per_second is None
    assert phase.throughput.measured_seconds == 0.0
    assert phase.upstream_arrivals_seconds == []


def test_a_phase_of_warm_up_alone_has_counts_but_no_verdict():
    phase = run(steps_of_a_second(2), warm_up=WarmUp(steps=5))
    assert phase.counts.trained_examples == 4
    assert phase.counts.measured_steps == 0
    assert phase.verdict is None
    assert phase.throughput.fresh_examples_per_second is None


def test_skipped_records_come_from_the_pipelines_counter():
    assert run(steps_of_a_second(1)).counts.skipped_records == 0
    assert run(steps_of_a_second(1), pipeline=ScriptedPipeline(skipped=7)).counts.skipped_records == 7


def test_stamps_of_fresh_examples_become_arrivals_on_the_phases_clock():
    records = [
        step(0, 1.0, ready=(0.25, 0.5)),
        # The stamp of the repeat is that of its first use: it must not show as a second arrival.
        step(1, 2.0, repeat_index=(1, 0), ready=(0.25, 1.75)),
        step(2, 3.0, ready=(2.5, 2.25)),
    ]
    phase = run(records)
    assert phase.upstream_arrivals_seconds == [(1, [1.75]), (2, [2.25, 2.5])]


def test_an_arrival_belongs_to_the_step_that_it_fell_into_not_to_the_one_that_used_it():
    records = [
        step(0, 1.0, ready=(0.5, 0.5)),
        step(1, 2.0, ready=(0.75, 1.0)),
        # Right at an end: to the step that ends there.
        step(2, 3.0, ready=(1.5, 2.0)),
    ]
    phase = run(records)
    assert phase.upstream_arrivals_seconds == [(1, [1.5, 2.0]), (2, [])]


def test_the_timeline_shows_eight_steps_in_the_middle_of_the_measured_ones():
    records = [step(index, index + 1.0, ready=(index + 0.5, index + 0.5)) for index in range(30)]
    phase = run(records, warm_up=WarmUp(steps=2))
    # 28 measured steps from 2 to 29: 10 before, 8 shown, 10 after.
    assert [index for index, _ in phase.upstream_arrivals_seconds] == [12, 13, 14, 15, 16, 17, 18, 19]
    assert len(phase.upstream_arrivals_seconds) == TIMELINE_STEPS
    assert phase.upstream_arrivals_seconds[0][1] == [12.5, 12.5]


def test_without_stamps_there_is_no_timeline():
    assert run(steps_of_a_second(12)).upstream_arrivals_seconds == []


def test_an_error_of_the_trainer_is_raised_and_what_was_measured_is_kept():
    runner, trainer = runner_of(steps_of_a_second(3), error=ValueError("the pipeline broke"))
    with pytest.raises(ValueError, match="the pipeline broke"):
        runner.run()
    assert trainer.closed
    assert runner.phase().counts.trained_examples == 6


def test_an_interrupt_between_steps_closes_the_trainer_and_keeps_the_step_before_it():
    runner, trainer = runner_of(steps_of_a_second(10))

    def interrupt_after_three():
        if runner.meter.steps == 3:
            raise KeyboardInterrupt

    runner.on_step = interrupt_after_three
    with pytest.raises(KeyboardInterrupt):
        runner.run()
    assert trainer.closed
    assert trainer.yielded == 3
    phase = runner.phase()
    assert phase.counts.steps == 3
    assert len(phase.steps.end_seconds) == 3
    assert phase.counts.measured_steps == 2


def test_phase_before_the_run_is_empty():
    runner, _ = runner_of(steps_of_a_second(3))
    assert runner.phase().counts.steps == 0


def test_progress_follows_the_limit():
    seen = []
    runner, _ = runner_of(steps_of_a_second(4), limit=RunLimit(steps=4))
    runner.on_step = lambda: seen.append(runner.progress)
    assert runner.progress == 0.0
    runner.run()
    assert seen == [0.25, 0.5, 0.75, 1.0]


def test_progress_of_a_seconds_limit_stands_at_zero_in_the_warm_up():
    seen = []
    runner, _ = runner_of(steps_of_a_second(9), limit=RunLimit(seconds=2.0), warm_up=WarmUp(steps=2))
    runner.on_step = lambda: seen.append(runner.progress)
    runner.run()
    assert seen == [0.0, 0.0, 0.5, 1.0]


def test_progress_of_epochs_needs_their_length():
    runner, _ = runner_of(steps_of_a_second(3), limit=RunLimit(epochs=3), pipeline=ScriptedPipeline(2))
    runner.run()
    assert runner.progress == 0.5
    unknown, _ = runner_of(steps_of_a_second(3), limit=RunLimit(epochs=3), pipeline=ScriptedPipeline(None))
    unknown.run()
    assert unknown.progress == 0.0


seconds = st.floats(min_value=0.001, max_value=10.0)


@given(
    st.lists(st.tuples(seconds, seconds, st.lists(st.integers(0, 3), min_size=1, max_size=5)), max_size=15),
    st.integers(1, 4),
)
def test_figures_agree_with_the_columns_for_any_steps(plan, warm_up_steps):
    now, records = 0.0, []
    for index, (wait, busy, repeat_index) in enumerate(plan):
        now += wait + busy
        records.append(step(index, now, wait, busy, tuple(repeat_index)))
    phase = run(records, warm_up=WarmUp(steps=warm_up_steps))
    assert phase.counts.fresh_examples + phase.counts.repeated_examples == phase.counts.trained_examples
    assert phase.counts.trained_examples == sum(len(repeats) for _, _, repeats in plan)
    assert phase.counts.fresh_examples == sum(repeats.count(0) for _, _, repeats in plan)
    assert (
        phase.steps.warm_up.count(False) == phase.counts.measured_steps == max(0, len(plan) - warm_up_steps)
    )
    measured = plan[warm_up_steps:]
    if not measured:
        assert phase.throughput.trained_examples_per_second is None
        return
    span = sum(wait + busy for wait, busy, _ in measured)
    trained = sum(len(repeats) for _, _, repeats in measured)
    assert phase.throughput.trained_examples_per_second == pytest.approx(trained / span)
    assert phase.accelerator_utilization == pytest.approx(sum(busy for _, busy, _ in measured) / span)


def test_steps_on_a_batch_that_the_device_held_are_repeats_of_all_its_examples():
    phase = run([step(index, index + 1.0, ids=(1, 2), device_repeat=index) for index in range(3)])
    assert (phase.counts.trained_examples, phase.counts.fresh_examples) == (6, 2)
    assert phase.steps.fresh_examples == [2, 0, 0]


def test_freshness_comes_from_the_ids():
    # Example 1 three times, twice of them in one batch; example 2 once.
    phase = run(
        [step(0, 1.0, repeat_index=(0, 1), ids=(1, 1)), step(1, 2.0, repeat_index=(2, 0), ids=(1, 2))]
    )
    report = phase.freshness
    assert (report["trained"], report["fresh"], report["examples"]) == (4, 2, 2)
    assert (report["duplicates_within_batches"], report["batches_with_duplicates"]) == (1, 1)


class ScriptedElastic:
    """Notes what it is told."""

    def __init__(self):
        self.seen = []

    def dataset(self):
        return "the elastic dataset"

    def observe(self, *figures):
        self.seen.append(figures)


def test_elastic_echo_feeds_the_trainer_and_hears_of_every_step():
    trainer, elastic = (
        ScriptedTrainer([step(0, 1.0), step(1, 2.0, wait=0.0, repeat_index=(0, 1))]),
        ScriptedElastic(),
    )
    PhaseRunner(
        ScriptedPipeline(), trainer, RunLimit(epochs=1), WarmUp(steps=1), elastic, clock=lambda: START_SECONDS
    ).run()
    assert trainer.dataset == "the elastic dataset"
    assert elastic.seen == [(0.25, 0.75, 2, 2), (0.0, 0.75, 1, 2)]


def test_a_bound_in_seconds_ends_a_phase_before_its_steps_are_done():
    trainer = ScriptedTrainer(steps_of_a_second(20))
    runner = PhaseRunner(
        ScriptedPipeline(),
        trainer,
        RunLimit(steps=10),
        WarmUp(steps=1),
        max_seconds=3.0,
        clock=lambda: START_SECONDS,
    )
    runner.run()
    assert runner.phase().counts.steps == 4  # one of warm-up and three of a second
    assert trainer.closed
