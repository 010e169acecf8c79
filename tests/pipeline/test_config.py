"""Options of the pipeline."""

from __future__ import annotations

import math

import pytest

from echoing.errors import OptionError
from echoing.insertion_point import InsertionPoint
from pipeline.config import PipelineConfig


def test_defaults_are_those_of_the_reference_trainer():
    config = PipelineConfig("data")
    assert (config.batch_size, config.image_size, config.dtype) == (1024, 299, "float32")
    assert (config.cycle_length, config.read_buffer_bytes) == (8, 8 * 1024 * 1024)
    assert (config.shuffle_buffer_size, config.prefetch_batches) == (1000, 2)
    assert (config.cb_distortion_range, config.cr_distortion_range) == (0.1, 0.1)


def test_insertion_point_is_accepted_in_either_spelling():
    config = PipelineConfig("data", insert_point="before_augment")
    assert config.parsed_insert_point is InsertionPoint.AFTER_DECODE


@pytest.mark.parametrize(
    "changes",
    [
        {"data_dir": ""},
        {"data_dir": "  "},
        {"batch_size": 0},
        {"batch_size": 2.0},
        {"image_size": 0},
        {"dtype": "float64"},
        {"epochs": 0},
        {"cycle_length": 0},
        {"read_buffer_bytes": -1},
        {"shuffle_buffer_size": -1},
        {"num_parallel_calls": 0},
        {"prefetch_batches": -1},
        {"seed": -1},
        {"cb_distortion_range": math.nan},
        {"cr_distortion_range": -0.1},
        {"cache": "disk"},
        {"on_bad_record": "ignore"},
        {"echo_factor": 0.5},
        {"echo_factor": math.nan},
        {"insert_point": "after_lunch"},
        {"stamp_upstream": True},
    ],
)
def test_value_that_is_not_allowed_is_refused_on_construction(changes):
    with pytest.raises(OptionError, match=r"is .* but must be"):
        PipelineConfig(**{"data_dir": "data", **changes})


@pytest.mark.parametrize(
    ("factor", "point", "echoes_examples"),
    [
        (1, "after_read", False),
        (2, "after_read", True),
        (2, "after_augment", True),
        (2, "after_batch", False),
    ],
)
def test_examples_are_echoed_before_the_batch_only(factor, point, echoes_examples):
    config = PipelineConfig("data", echo_factor=factor, insert_point=point)
    assert config.echoes_examples is echoes_examples
