"""Lines and counts of a training's steps."""

from __future__ import annotations

import json

from bench.train_log import Counts, TrainLog
from trainer.learning_rate import LearningRateSchedule
from trainer.step import StepRecord

SCHEDULE = LearningRateSchedule(batch_size=256, examples_per_epoch=2560, decay=0.5, decay_epochs=1)
"""Ten steps an epoch: the rate halves after each ten."""


def record(index, examples=4, loss=2.0):
    return StepRecord(index, 0.5, index + 0.5, index + 1.0, 0.0, examples, loss=loss)


def lines(folder, name="metrics.jsonl"):
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def open_log(folder, step=0, counts=None, every=1, last=100, **options):
    return TrainLog(str(folder), SCHEDULE, counts or Counts(), step, every, None, last, **options)


def test_every_step_has_a_line_with_its_rate_and_the_counts_up_to_it(tmp_path):
    log = open_log(tmp_path)
    log.add([record(8, loss=3.0), record(9), record(10)], [4, 1, 0])
    log.close()
    first, second, third = lines(tmp_path)
    assert first == {
        "step": 9, "loss": 3.0, "learning_rate": 0.165, "examples_fresh": 4, "examples_trained": 4,
    }  # fmt: skip
    assert (second["examples_fresh"], second["examples_trained"]) == (5, 8)
    # Step 11 is the first of the second epoch.
    assert (third["step"], third["learning_rate"], third["examples_fresh"]) == (11, 0.0825, 5)


def test_fewer_lines_have_the_same_counts_and_the_last_step_is_always_there(tmp_path):
    log = open_log(tmp_path, every=3, last=7)
    log.add([record(index) for index in range(7)], [4] * 7)
    log.close()
    assert [(line["step"], line["examples_fresh"]) for line in lines(tmp_path)] == [(3, 12), (6, 24), (7, 28)]


def test_resumed_counts_go_on_and_lines_of_undone_steps_are_cut(tmp_path):
    log = open_log(tmp_path)
    log.add([record(index) for index in range(5)], [4] * 5)
    log.close()
    again = open_log(tmp_path, step=3, counts=Counts(12, 12))
    again.add([record(3), record(4)], [4, 4])
    again.close()
    found = lines(tmp_path)
    assert [line["step"] for line in found] == [1, 2, 3, 4, 5]
    assert [line["examples_trained"] for line in found] == [4, 8, 12, 16, 20]


def test_several_hosts_count_all_their_examples(tmp_path):
    log = open_log(tmp_path)
    log.add([record(0)], [5], workers=2)
    log.close()
    assert (log.counts.fresh, log.counts.trained) == (5, 8)


def test_host_that_does_not_write_only_counts(tmp_path):
    log = open_log(tmp_path / "model", writes=False)
    log.add([record(0)], [4])
    log.close()
    assert log.counts.trained == 4 and log.last_loss == 2.0
    assert not (tmp_path / "model").exists()


def test_evaluations_have_a_log_of_their_own(tmp_path):
    log = open_log(tmp_path)
    assert log.last_evaluated == 0
    figures = {"accuracy": 0.5, "accuracy_top_5": 1.0, "loss": 2.5, "examples": 8, "averaged": True}
    log.add_evaluation(10, figures)
    log.close()
    assert lines(tmp_path, "evaluations.jsonl") == [{"step": 10, **figures}]
    assert open_log(tmp_path, step=10).last_evaluated == 10
    assert open_log(tmp_path, step=9).last_evaluated == 0
