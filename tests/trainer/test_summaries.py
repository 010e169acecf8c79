from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from echoing.errors import DataError
from trainer.metrics_log import MetricsLog
from trainer.summaries import MetricWriter, MultiWriter, TensorBoardWriter


def events_in(folder: Path) -> list[Any]:
    """Returns the events in the order in which TensorBoard reads them."""
    return [
        tf.compat.v1.Event.FromString(record.numpy())
        for path in sorted(folder.iterdir())
        for record in tf.data.TFRecordDataset(str(path))
    ]


def points_in(folder: Path) -> list[tuple[int, str, float]]:
    """Returns the points that TensorBoard keeps: those before a START are dropped from its step on."""
    points: list[tuple[int, str, float]] = []
    for event in events_in(folder):
        if event.HasField("session_log") and event.session_log.status == tf.compat.v1.SessionLog.START:
            points = [point for point in points if point[0] < event.step]
        for value in event.summary.value:
            points.append((event.step, value.tag, float(tf.make_ndarray(value.tensor))))
    return points


def age(folder: Path) -> None:
    """Gives the files the names that they would have had an hour ago."""
    for path in sorted(folder.iterdir()):
        begin, now, rest = path.name.partition(path.name.split(".")[3])
        path.rename(folder / f"{begin}{int(now.split('-')[0]) - 3600:010d}{now[10:]}{rest}")


def test_points_are_scalars_of_tensorboard(tmp_path: Path) -> None:
    writer = TensorBoardWriter(str(tmp_path / "train"))
    writer.write_scalars(10, {"loss": 0.5, "epoch": np.float64(2)})
    writer.write_scalars(20, {"loss": np.float32(0.25), "au": None, "images": 7})
    writer.close()
    assert points_in(tmp_path / "train") == [
        (10, "loss", 0.5),
        (10, "epoch", 2.0),
        (20, "loss", 0.25),
        (20, "images", 7.0),
    ]
    (first, *_) = [event for event in events_in(tmp_path / "train") if event.summary.value]
    # What tensorboard/plugins/scalar/metadata.py asks for: its name, no content, data class 1.
    metadata = first.summary.value[0].metadata
    assert metadata.plugin_data.plugin_name == "scalars"
    assert metadata.plugin_data.content == b""
    assert metadata.data_class == 1
    assert first.summary.value[0].tensor.dtype == tf.float32.as_datatype_enum


def test_flush_makes_points_readable(tmp_path: Path) -> None:
    writer = TensorBoardWriter(str(tmp_path))
    writer.write_scalars(1, {"loss": 1})
    writer.flush()
    assert points_in(tmp_path) == [(1, "loss", 1.0)]
    writer.close()


@pytest.mark.parametrize(("restored", "left"), [(20, [10, 20]), (10, [10]), (0, [])])
def test_points_beyond_the_restored_step_are_dropped_and_drawn_again(
    tmp_path: Path, restored: int, left: list[int]
) -> None:
    killed = TensorBoardWriter(str(tmp_path))
    for step in (10, 20, 30):
        killed.write_scalars(step, {"loss": 1})
    killed.flush()
    age(tmp_path)
    resumed = TensorBoardWriter(str(tmp_path), restored)
    resumed.write_scalars(restored + 10, {"loss": 2})
    resumed.close()
    expected = [(step, "loss", 1.0) for step in left] + [(restored + 10, "loss", 2.0)]
    assert points_in(tmp_path) == expected
    killed.close()


def test_restart_is_dated_by_the_clock_and_says_the_format(tmp_path: Path) -> None:
    TensorBoardWriter(str(tmp_path)).close()
    TensorBoardWriter(str(tmp_path), 7, clock=lambda: 1234.5).close()
    version, start = [
        tf.compat.v1.Event.FromString(record.numpy())
        for record in tf.data.TFRecordDataset(str(tmp_path / "events.out.tfevents.0000001234-restart"))
    ]
    assert (version.file_version, start.step, start.wall_time) == ("brain.Event:2", 8, 1234.5)


def test_folder_that_is_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="Cannot write event files to"):
        TensorBoardWriter(str(tmp_path / "file" / "train"))


class Recorder:
    def __init__(self, name: str, calls: list[Any], failing: str = "") -> None:
        self._name, self._calls, self._failing = name, calls, failing

    def _call(self, what: str) -> None:
        self._calls.append((self._name, what))
        if what == self._failing:
            raise OSError(f"{self._name} fails to {what}")

    def write_scalars(self, step: int, scalars: Any) -> None:
        self._call(f"write {step} {dict(scalars)}")

    def flush(self) -> None:
        self._call("flush")

    def close(self) -> None:
        self._call("close")


def test_several_writers_get_every_call_in_their_order() -> None:
    calls: list[Any] = []
    writer: MetricWriter = MultiWriter([Recorder("a", calls), Recorder("b", calls)])
    writer.write_scalars(3, {"loss": 1})
    writer.flush()
    writer.close()
    expected = ["write 3 {'loss': 1}", "flush", "close"]
    assert calls == [(name, what) for what in expected for name in "ab"]


@pytest.mark.parametrize("what", ["flush", "close"])
def test_failing_writer_does_not_keep_the_others_from_flushing_and_closing(what: str) -> None:
    calls: list[Any] = []
    writer = MultiWriter([Recorder("a", calls, what), Recorder("b", calls, what), Recorder("c", calls)])
    with pytest.raises(OSError, match="a fails"):
        getattr(writer, what)()
    assert calls == [("a", what), ("b", what), ("c", what)]


def test_log_and_tensorboard_take_the_same_calls(tmp_path: Path) -> None:
    log = MetricsLog(str(tmp_path), 0, fields=())
    writer = MultiWriter([log, TensorBoardWriter(str(tmp_path / "train"))])
    writer.write_scalars(1, {"loss": 0.5, "au": None})
    writer.close()
    assert (tmp_path / "metrics.jsonl").read_text() == '{"step": 1, "loss": 0.5, "au": null}\n'
    assert points_in(tmp_path / "train") == [(1, "loss", 0.5)]
