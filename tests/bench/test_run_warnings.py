from types import SimpleNamespace

import psutil
import pytest

from bench.run_options import RunOptions
from bench.run_warnings import run_warnings
from echoing.errors import DataError
from pipeline.config import PipelineConfig

SOURCE = SimpleNamespace(mean_record_bytes=110_000.0, shards=())


def options(**pipeline):
    values = {"batch_size": 8, "echo_factor": 2, "insert_point": "after_augment", "shuffle_buffer_size": 64}
    return RunOptions(PipelineConfig("some-data", **(values | pipeline)))


@pytest.fixture
def long_phase(make_phase):
    return make_phase(40, busy_seconds=0.1, wait_seconds=0.1)


@pytest.fixture
def memory(monkeypatch):
    def set_bytes(count):
        monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=count))

    return set_bytes


def test_a_sound_run_has_no_warnings(long_phase):
    assert run_warnings(options(), SOURCE, long_phase) == []


@pytest.mark.parametrize("measured, warned", [(0, True), (1, True), (9, True), (10, False)])
def test_fewer_than_ten_measured_steps_are_too_few(make_phase, measured, warned):
    warnings = run_warnings(options(), SOURCE, make_phase(measured + 2, 0.1, 0.1, warm_up_steps=2))
    assert len(warnings) == warned
    if warned:
        assert warnings[0].startswith(f"Only {measured} steps were measured")
        assert "--steps" in warnings[0]


def test_skipped_records_are_counted_in_a_warning(make_phase):
    (warning,) = run_warnings(options(), SOURCE, make_phase(40, 0.1, 0.1, skipped_records=3))
    assert warning.startswith("3 unusable records were skipped")
    assert "pipebench data check" in warning


@pytest.mark.parametrize("point", ["after_read", "after_decode", "after_augment"])
@pytest.mark.parametrize("buffer", [0, 1])
def test_an_echo_of_examples_without_a_shuffle_warns_of_duplicates_in_the_batch(long_phase, point, buffer):
    changes = {"insert_point": point, "shuffle_buffer_size": buffer, "echo_factor": 4}
    (warning,) = run_warnings(options(**changes), SOURCE, long_phase)
    assert "holds 2 different examples on average and 6 duplicates" in warning


def test_an_echo_of_batches_or_none_needs_no_shuffle(long_phase):
    for changes in ({"insert_point": "after_batch"}, {"echo_factor": 1}):
        assert run_warnings(options(shuffle_buffer_size=0, **changes), SOURCE, long_phase) == []


@pytest.fixture
def example_megabyte(monkeypatch):
    """Makes every example a megabyte and notes where it was asked for."""
    asked = []

    def example_bytes(point, source, image_size):
        asked.append((point.value, image_size))
        return 1e6

    monkeypatch.setattr("bench.run_warnings.example_bytes", example_bytes)
    return asked


def test_a_shuffle_buffer_of_more_than_half_the_memory_warns(long_phase, memory, example_megabyte):
    # Behind an echo of 2 a buffer of a thousand holds 1000 x (1 + 1/2) / 2 = 750 different examples.
    changes = {"image_size": 299, "shuffle_buffer_size": 1000, "insert_point": "after_decode"}
    memory(1_500_001_000)
    assert run_warnings(options(**changes), SOURCE, long_phase) == []
    memory(1_499_999_000)
    (warning,) = run_warnings(options(**changes), SOURCE, long_phase)
    assert "holds about 0.8 GB of the machine's 1.5 GB" in warning
    assert "--shuffle-buffer-bytes" in warning and "--insert-point" in warning
    assert example_megabyte == [("after_decode", 299)] * 2


def test_a_buffer_with_a_budget_or_before_the_echo_needs_no_memory_warning(
    long_phase, memory, example_megabyte
):
    memory(1)
    for changes in ({"shuffle_buffer_bytes": 10**9}, {"insert_point": "after_batch"}):
        assert run_warnings(options(**changes), SOURCE, long_phase) == []
    assert example_megabyte == []


def test_data_without_a_readable_record_gives_no_memory_warning(long_phase, memory, monkeypatch):
    def fail(*arguments):
        raise DataError("no record")

    memory(1)
    monkeypatch.setattr("bench.run_warnings.example_bytes", fail)
    assert run_warnings(options(), SOURCE, long_phase) == []


def test_a_shuffle_left_before_the_echo_warns_of_duplicates(long_phase):
    (warning,) = run_warnings(options(echo_shuffle="none"), SOURCE, long_phase)
    assert "4 different examples on average and 4 duplicates" in warning


def test_an_elastic_echo_without_a_shuffle_warns_without_a_number(long_phase):
    (warning,) = run_warnings(options(echo_factor="elastic", echo_shuffle="none"), SOURCE, long_phase)
    assert "stand side by side" in warning
