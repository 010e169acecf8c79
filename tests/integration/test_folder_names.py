"""Folders that are not plain local ones: other file systems, names that a pattern would read otherwise."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

FAST = [
    "--batch-size", 4, "--image-size", 16, "--trainer", "emulated", "--step-time-seconds", 0.001,
    "--epochs", 1, "--no-baseline", "--echo-factor", 2,
]  # fmt: skip


def read_json(path):
    with tf.io.gfile.GFile(str(path)) as file:
        return json.loads(file.read())


def test_data_output_and_report_may_lie_in_another_file_system(cli_invoke, tmp_path, monkeypatch):
    # CL-03, with the file system that TensorFlow keeps in the memory of the process.
    monkeypatch.chdir(tmp_path)
    data, out = "ram://folder-names/data", "ram://folder-names/out"
    words = ["--examples", 8, "--shards", 2, "--height", 32, "--width", 40, "--workers", 1]
    assert cli_invoke("data", "make", data, *words).exit_code == 0
    assert cli_invoke("data", "check", data).exit_code == 0
    result = cli_invoke("run", "--data-dir", data, *FAST, "--output", out)
    assert result.exit_code == 0, result.stderr
    assert f"{out}/report.html" in result.stdout.replace("\n", "")
    counts = read_json(f"{out}/result.json")["counts"]
    assert (counts["fresh_examples"], counts["trained_examples"]) == (8, 16)
    assert cli_invoke("run", "--data-dir", data, *FAST, "--output", out).exit_code == 2
    page = tf.io.gfile.GFile(f"{out}/report.html").read()
    tf.io.gfile.remove(f"{out}/report.html")
    assert cli_invoke("report", out).exit_code == 0
    assert tf.io.gfile.GFile(f"{out}/report.html").read() == page
    # No local folder named "ram:" or "runs".
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--data-dir", "--output"])
def test_a_file_system_that_does_not_exist_is_a_user_error(
    cli_invoke, small_data, tmp_path, monkeypatch, option
):
    monkeypatch.chdir(tmp_path)
    folders = {"--data-dir": small_data, "--output": tmp_path / "out"} | {option: "nofs://bucket/x"}
    result = cli_invoke("run", *(word for pair in folders.items() for word in pair), *FAST)
    assert result.exit_code == 2
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert "nofs://bucket/x" in line
    assert not (tmp_path / "nofs:").exists()


@pytest.mark.parametrize("name", ["set [v1]", "a*b", "[red] bold?", "{x}~$HOME", "-dash", "ünïcode 写真"])
def test_a_folders_name_is_taken_letter_by_letter(cli_invoke, make_shards, tmp_path, without_charts, name):
    # CL-05: as a pattern, each name would match one of the folders beside it, which holds other data.
    for other in ("set v", "set 1", "axxb", "r boldx", "x"):
        make_shards(tmp_path / other, records=12)
    data = make_shards(tmp_path / name, records=8, shards=2)
    out = tmp_path / f"out {name}"
    result = cli_invoke("run", f"--data-dir={data}", *FAST, f"--output={out}")
    assert result.exit_code == 0, result.stderr
    document = read_json(out / "result.json")
    assert document["data"]["data_dir"] == data
    assert document["data"]["records"] == 8
    assert document["counts"]["fresh_examples"] == 8
    assert f"{out}/report.html" in result.stdout.replace("\n", "")
    assert cli_invoke("report", out).exit_code == 0
    assert cli_invoke("data", "check", data).exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        "set v", "set 1", "axxb", "r boldx", "x", name, f"out {name}",
    }  # fmt: skip


def test_a_relative_folder_is_relative_to_the_working_directory(
    cli_invoke, make_shards, tmp_path, monkeypatch, without_charts
):
    make_shards(tmp_path / "data", records=8)
    monkeypatch.chdir(tmp_path)
    assert cli_invoke("run", "--data-dir", "data", *FAST).exit_code == 0
    (run,) = (tmp_path / "runs").iterdir()
    assert (run / "result.json").exists() and (run / "report.html").exists()


def test_without_a_data_folder_images_are_generated_once_and_said(
    cli_invoke, tmp_path, monkeypatch, without_charts
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("bench.default_data.EXAMPLES", 8)
    first = cli_invoke("run", *FAST, "--output", tmp_path / "first")
    assert first.exit_code == 0, first.stderr
    assert "Generating 8 images, once, in" in first.stderr
    second = cli_invoke("run", *FAST, "--output", tmp_path / "second")
    assert second.exit_code == 0
    assert "Using the generated images in" in second.stderr
    document = read_json(tmp_path / "second" / "result.json")
    assert document["data"]["generated"] is True
    assert document["data"]["data_dir"].startswith(str(tmp_path / "cache"))


@pytest.mark.skipif(sys.platform != "linux", reason="file names of any bytes are Linux's")
@pytest.mark.slow
def test_a_folder_whose_name_is_not_utf8_works_or_is_refused_in_words(make_shards, tmp_path):
    data = Path(make_shards(tmp_path / "data", records=8))
    odd = os.fsencode(tmp_path) + b"/caf\xe9"
    os.rename(data, odd)  # noqa: PTH104
    code = "import sys; from bench.cli import main; main(sys.argv[1:])"
    words = ["run", "--data-dir", odd, *map(str, FAST), "--output", str(tmp_path / "out")]
    result = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, timeout=200, check=False
    )
    assert result.returncode in (0, 2), result.stderr
    assert b"Traceback" not in result.stderr
