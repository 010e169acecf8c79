import json
import math

import pytest

from bench.run_options import RunLimit, RunOptions
from echoing.errors import OptionError
from pipeline.config import PipelineConfig

PIPELINE = PipelineConfig("some-data", echo_factor=2, insert_point="before_batch")


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"seconds": 1.0, "steps": 1},
        {"steps": 1, "epochs": 1},
        {"seconds": 1.0, "epochs": 1},
        {"seconds": 1.0, "steps": 1, "epochs": 1},
    ],
)
def test_a_limit_is_exactly_one_of_the_three(limits):
    with pytest.raises(OptionError, match="exactly one"):
        RunLimit(**limits)


@pytest.mark.parametrize("limits", [{"seconds": 0.5}, {"steps": 1}, {"epochs": 1}])
def test_a_single_limit_is_taken(limits):
    limit = RunLimit(**limits)
    assert {"seconds": limit.seconds, "steps": limit.steps, "epochs": limit.epochs} == {
        "seconds": None, "steps": None, "epochs": None, **limits,
    }  # fmt: skip


@pytest.mark.parametrize(
    "limits",
    [
        {"seconds": 0}, {"seconds": -1}, {"seconds": math.nan}, {"seconds": math.inf}, {"seconds": "5"},
        {"steps": 0}, {"steps": -1}, {"steps": 1.5}, {"steps": True},
        {"epochs": 0}, {"epochs": 0.5},
    ],
)  # fmt: skip
def test_a_limit_that_is_no_positive_number_is_refused_by_its_name(limits):
    ((name, value),) = limits.items()
    with pytest.raises(OptionError) as refused:
        RunLimit(**limits)
    assert refused.value.name == name
    assert repr(value) in str(refused.value)


@pytest.mark.parametrize(
    "name, value, shown",
    [
        ("trainer", "vgg", "trainer"),
        ("accelerator", "tpu-v9", "accelerator"),
        ("step_seconds", 0.0, "step_time_seconds"),
        ("step_seconds", math.nan, "step_time_seconds"),
        ("jitter", -0.1, "jitter"),
        ("jitter", 1.1, "jitter"),
        ("jitter", math.nan, "jitter"),
        ("baseline_seconds", 0, "baseline_seconds"),
        ("warmup_steps", 0, "warmup_steps"),
        ("warmup_seconds", -1, "warmup_seconds"),
        ("warmup_seconds", math.inf, "warmup_seconds"),
    ],
)
def test_a_wrong_option_is_refused_under_the_name_that_the_user_knows(name, value, shown):
    with pytest.raises(OptionError) as refused:
        RunOptions(PIPELINE, **{name: value})
    assert str(refused.value).startswith(f"{shown} is {value!r}")


def test_an_unknown_preset_is_answered_with_those_there_are():
    with pytest.raises(OptionError) as refused:
        RunOptions(PIPELINE, accelerator="tpu-v9")
    for name in ("tpu-v2-8", "v100", "a100", "h100"):
        assert name in str(refused.value)


def test_the_limit_is_some_seconds_unless_one_is_given():
    assert RunOptions(PIPELINE).limit == RunLimit(seconds=25.0)


def test_with_pipeline_changes_only_what_it_is_told():
    options = RunOptions(PIPELINE, limit=RunLimit(steps=3))
    changed = options.with_pipeline(batch_size=7)
    assert changed.pipeline.batch_size == 7
    assert changed.pipeline.data_dir == "some-data"
    assert changed.limit == RunLimit(steps=3)
    assert options.pipeline.batch_size == 1024


def test_the_record_of_the_options_names_every_one_in_words_that_json_holds():
    document = RunOptions(PIPELINE, limit=RunLimit(epochs=4)).to_dict()
    assert json.loads(json.dumps(document)) == document
    assert document["echo_factor"] == 2
    assert document["insert_point"] == "after_augment"
    assert (document["limit_seconds"], document["limit_steps"], document["limit_epochs"]) == (None, None, 4)
    assert "pipeline" not in document and "limit" not in document
    for name in ("data_dir", "batch_size", "shuffle_buffer_size", "seed", "trainer", "warmup_steps", "cache"):
        assert name in document


@pytest.mark.parametrize("factor, shown", [("2", 2), ("1.5", 1.5), (3.0, 3), (1, 1)])
def test_the_factor_in_the_record_is_a_number(factor, shown):
    document = RunOptions(PipelineConfig("some-data", echo_factor=factor)).to_dict()
    assert document["echo_factor"] == shown
    assert type(document["echo_factor"]) is type(shown)
