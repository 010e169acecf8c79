from types import SimpleNamespace

import psutil
import pytest

from bench.run_options import RunOptions
from bench.run_warnings import run_warnings
from pipeline.config import PipelineConfig

SOURCE = SimpleNamespace(mean_record_bytes=110_000.0)


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
    (warning,) = run_warnings(
        options(insert_point=point, shuffle_buffer_size=buffer, echo_factor=4), SOURCE, long_phase
    )
    assert "about 2 different examples and 6 duplicates" in warning
    assert "--shuffle-buffer-size" in warning


def test_an_echo_of_batches_or_none_needs_no_shuffle(long_phase):
    for changes in ({"insert_point": "after_batch"}, {"echo_factor": 1}):
        assert run_warnings(options(shuffle_buffer_size=0, **changes), SOURCE, long_phase) == []


def test_a_shuffle_buffer_of_more_than_half_the_memory_warns(long_phase, memory):
    # 299 x 299 x 3 floats are 1,072,812 bytes; a thousand of them 1.07 GB.
    changes = {"image_size": 299, "shuffle_buffer_size": 1000}
    memory(2_145_624_000)
    assert run_warnings(options(**changes), SOURCE, long_phase) == []
    memory(2_145_623_000)
    (warning,) = run_warnings(options(**changes), SOURCE, long_phase)
    assert "may hold 1.1 GB of the machine's 2.1 GB" in warning


def test_the_buffer_holds_compressed_records_after_the_read(long_phase, memory):
    # A thousand records of 110 kB are 110 MB, whatever the size of the images.
    changes = {"insert_point": "after_read", "shuffle_buffer_size": 1000}
    memory(220_000_000)
    assert run_warnings(options(**changes), SOURCE, long_phase) == []
    memory(219_000_000)
    assert len(run_warnings(options(**changes), SOURCE, long_phase)) == 1


def test_records_that_were_not_counted_give_no_memory_warning(long_phase, memory):
    memory(1)
    source = SimpleNamespace(mean_record_bytes=None)
    assert run_warnings(options(insert_point="after_read"), source, long_phase) == []


def test_the_buffer_holds_decoded_images_after_the_decode(long_phase, memory):
    # The guess for a decoded image is 500 x 375 x 3 = 562,500 bytes.
    memory(1_124_000_000)
    changes = {"insert_point": "after_decode", "shuffle_buffer_size": 1000}
    (warning,) = run_warnings(options(**changes), SOURCE, long_phase)
    assert "0.6 GB" in warning and "--insert-point" in warning
