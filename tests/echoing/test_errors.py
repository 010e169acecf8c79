"""Messages and exit codes of the user errors."""

from __future__ import annotations

import pytest

from echoing.errors import DataError, OptionError, PipebenchError, RecordError


def test_option_error_states_name_value_rule_and_advice():
    error = OptionError("batch_size", 0, "an integer >= 1", "Give --batch-size 32.")
    assert str(error) == "batch_size is 0, but must be an integer >= 1. Give --batch-size 32."


def test_record_error_names_shard_index_and_offset():
    error = RecordError("train-00000-of-00001", 2, "no image", offset_bytes=48)
    assert str(error) == "train-00000-of-00001, record 2 (offset 48 bytes): no image"


def test_record_error_without_offset_leaves_it_out():
    assert str(RecordError("a", 0, "bad")) == "a, record 0: bad"


@pytest.mark.parametrize("kind", [OptionError("a", 1, "b"), DataError("x"), RecordError("s", 0, "r")])
def test_every_user_error_has_one_base_and_exit_code_2(kind):
    assert isinstance(kind, PipebenchError)
    assert kind.exit_code == 2
