"""`pipebench bench pipeline`: options, what it leaves behind, and a short comparison of real pipelines."""

import csv
import functools
import json
import os
import signal
import subprocess
import sys

import psutil
import pytest

from bench.pipelines import timing, variants
from bench.pipelines.timing import Timing
from bench.pipelines.variants import Variant

MODULES = {
    "endless": "def open_batches(task):\n    while True:\n        yield task.batch_size\n",
    "broken": "def open_batches(task):\n    raise RuntimeError('no codec')\n",
    "noting": (
        "import os\n\n"
        "def open_batches(task):\n"
        "    with open(os.environ['NOTES'], 'w') as notes:\n"
        "        notes.write(str(os.getpid()))\n"
        "    while True:\n"
        "        yield task.batch_size\n"
    ),
}


@pytest.fixture
def scripted(tmp_path, monkeypatch):
    """Returns a function that puts variants of scripted modules, by name, in place of the real ones."""
    folder = tmp_path / "modules"
    folder.mkdir()
    for name, text in MODULES.items():
        (folder / f"scripted_{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setattr(timing, "Timing", functools.partial(Timing, warm_up_seconds=0.0, settle_seconds=0.0))

    def use(**modules):
        chosen = tuple(Variant(name, "", f"scripted_{module}", "uint8") for name, module in modules.items())
        monkeypatch.setattr(variants, "VARIANTS", chosen)

    return use


@pytest.fixture
def compare(cli_invoke, small_data, tmp_path):
    """Returns a function that runs a short comparison with more words on the line."""

    def run(*words):
        return cli_invoke(
            "bench", "pipeline", "--data-dir", small_data, "--rounds", 1, "--seconds", 0.01,
            "--output", tmp_path / "out", *words,
        )  # fmt: skip

    return run


@pytest.mark.parametrize(
    "words, said",
    [
        (["--rounds", "0"], "--rounds"),
        (["--seconds", "0"], "--seconds"),
        (["--seconds", "nan"], "--seconds"),
        (["--batch-size", "0"], "--batch-size"),
        (["--variants", ""], "--variants"),
        (["--variants", "reference,turbo"], "'turbo', but must be names of reference, tuned"),
        (["--variants", ","], "separated by commas"),
        (["--data-dir", "no/such/folder"], "no/such/folder"),
        (["--split", "nothing"], "nothing"),
    ],
)
def test_wrong_options_are_refused_and_leave_nothing_behind(compare, tmp_path, words, said):
    result = compare(*words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not (tmp_path / "out").exists()


def test_folder_that_holds_files_is_refused_before_anything_is_measured(compare, tmp_path, scripted):
    scripted(reference="broken")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "pipeline.csv").write_text("precious")
    result = compare()
    assert result.exit_code == 2
    assert "is not empty" in result.stderr
    assert (tmp_path / "out" / "pipeline.csv").read_text() == "precious"


def test_figures_are_written_and_shown(compare, tmp_path, scripted):
    scripted(reference="endless", ours_uint8="endless")
    result = compare()
    assert result.exit_code == 0, result.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "pipeline.csv", "pipeline.json", "pipeline.png"
    ]  # fmt: skip
    assert "Measuring reference, ours_uint8" in result.stderr
    assert "Wrote" in result.stderr
    assert result.stdout.splitlines()[1].startswith("reference")


def test_json_on_stdout_is_the_file(compare, tmp_path, scripted):
    scripted(reference="endless")
    result = compare("--json", "--batch-size", 7, "--image-size", 33)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == (tmp_path / "out" / "pipeline.json").read_text()
    document = json.loads(result.stdout)
    assert document["task"]["batch_size"] == 7
    assert document["task"]["image_size"] == 33
    assert document["timing"]["measured_seconds"] == 0.01
    (one,) = document["variants"]
    (measured,) = one["rounds"]
    assert one["images_per_second"] == measured["images"] / measured["seconds"]


def test_one_variant_that_fails_is_told_and_the_others_are_written(compare, tmp_path, scripted):
    scripted(reference="endless", grain="broken")
    result = compare("--json")
    assert result.exit_code == 1
    first, second = json.loads(result.stdout)["variants"]
    assert first["error"] == "" and first["images_per_second"] > 0
    assert second["error"] == "RuntimeError: no codec" and second["images_per_second"] is None
    with open(tmp_path / "out" / "pipeline.csv", newline="") as file:
        assert [row["rounds"] for row in csv.DictReader(file)] == ["1", "0"]


@pytest.mark.parametrize("is_there", [False, True])
def test_nothing_measured_is_an_error_that_leaves_the_folder_as_it_was(compare, tmp_path, scripted, is_there):
    scripted(reference="broken")
    if is_there:
        (tmp_path / "out").mkdir()
    result = compare()
    assert result.exit_code == 2
    assert "Error: No pipeline could be measured. reference: RuntimeError: no codec" in result.stderr
    assert (tmp_path / "out").exists() == is_there
    assert not is_there or list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    "signal_number, exit_code, said", [(signal.SIGINT, 130, "Interrupted."), (signal.SIGTERM, 143, "")]
)
def test_a_comparison_that_is_stopped_ends_its_processes_and_writes_nothing(
    small_data, tmp_path, scripted, signal_number, exit_code, said
):
    notes = tmp_path / "notes"
    os.mkfifo(notes)
    code = (
        "import sys\n"
        "from bench.cli import main\n"
        "from bench.pipelines import variants\n"
        "one = variants.Variant('reference', '', 'scripted_noting', 'uint8')\n"
        "variants.VARIANTS = (one,)\n"
        "main(sys.argv[1:])\n"
    )
    words = ["bench", "pipeline", "--data-dir", small_data, "--seconds", "600", "--output", tmp_path / "out"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        stderr=subprocess.PIPE,
        env={**os.environ, "NOTES": str(notes)},
        text=True,
    )
    worker = int(notes.read_text())  # waits until the pipeline is there
    process.send_signal(signal_number)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == exit_code, stderr
    assert said in stderr and "Traceback" not in stderr
    assert not psutil.pid_exists(worker)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_real_pipelines_side_by_side(cli_invoke, make_shards, tmp_path, monkeypatch):
    monkeypatch.setattr(timing, "Timing", functools.partial(Timing, warm_up_seconds=0.1, settle_seconds=0.1))
    children = set(psutil.Process().children())
    data = make_shards(tmp_path / "data", records=32, shards=2, height=120, width=160)
    result = cli_invoke(
        "bench", "pipeline", "--data-dir", data, "--rounds", 1, "--seconds", 0.3, "--batch-size", 8,
        "--image-size", 75, "--variants", "reference,ours_uint8,crop_decode", "--output", tmp_path / "out",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    with open(tmp_path / "out" / "pipeline.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["variant"] for row in rows] == ["reference", "ours_uint8", "crop_decode"]
    assert [row["output"] for row in rows] == ["float32", "uint8", "none"]
    rates = [float(row["images_per_second"]) for row in rows]
    for row, rate in zip(rows, rates, strict=True):
        # One round: the ratios follow from the rates, whatever these are.
        assert float(row["ratio_to_reference"]) == pytest.approx(rate / rates[0], rel=1e-5)
        assert float(row["ratio_to_crop_decode"]) == pytest.approx(rate / rates[2], rel=1e-5)
        assert float(row["cpu_seconds_per_image"]) > 0
        assert int(row["peak_memory_bytes"]) > 100_000_000  # TensorFlow alone takes more
    document = json.loads((tmp_path / "out" / "pipeline.json").read_text())
    assert [one["rounds"][0]["images"] % 8 for one in document["variants"]] == [0, 0, 0]
    assert set(psutil.Process().children()) == children
