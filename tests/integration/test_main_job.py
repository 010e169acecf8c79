"""One run from the command line to the report: relations that hold on every machine, nothing about speed."""

import io
import json
import re
import shlex
from pathlib import Path

import pandas as pd
import pytest

from bench import prediction

FILES = {"result.json", "steps.csv", "report.html", "step_time.png", "throughput.png", "timeline.png"}


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory, cli_invoke):
    """48 generated images of 4 classes in 4 shards."""
    folder = tmp_path_factory.mktemp("job") / "my data"
    made = cli_invoke(
        "data", "make", folder, "--examples", 48, "--classes", 4, "--height", 48, "--width", 64,
        "--shards", 4, "--workers", 1,
    )  # fmt: skip
    assert made.exit_code == 0, made.stderr
    return folder


@pytest.fixture(scope="module")
def short_probes():
    """Lets the probes of the prediction take a moment instead of seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prediction, "PROBE_SECONDS", 0.2)
        patch.setattr(prediction, "PROBE_WARMUP_SECONDS", 0.0)
        yield


@pytest.fixture(scope="module")
def job(tmp_path_factory, cli_invoke, data_dir, short_probes):
    """A run with baseline: echo 2 after the augmentation, 12 steps of 8 on an emulated device."""
    folder = tmp_path_factory.mktemp("job") / "out"
    invocation = cli_invoke(
        "run", "--data-dir", data_dir, "--echo-factor", 2, "--insert-point", "before_batch", "--steps", 12,
        "--batch-size", 8, "--image-size", 32, "--trainer", "emulated", "--step-time-seconds", 0.02,
        "--shuffle-buffer-size", 24, "--seed", 11, "--output", folder, "--json",
    )  # fmt: skip
    assert invocation.exit_code == 0, invocation.stderr
    return folder, invocation


@pytest.fixture(scope="module")
def document(job):
    return json.loads((job[0] / "result.json").read_text())


@pytest.fixture(scope="module")
def steps(job):
    return pd.read_csv(job[0] / "steps.csv")


def test_the_folder_holds_result_steps_charts_and_report(job):
    assert {path.name for path in job[0].iterdir()} == FILES


def test_json_on_stdout_is_the_record_and_nothing_else(job, document):
    assert json.loads(job[1].stdout) == document
    assert "Baseline without echo" in job[1].stderr


def test_the_record_has_every_key_that_the_schema_promises(document):
    assert document["schema"] == "pipebench.run" and document["schema_version"] == 1
    assert document["complete"] is True
    assert document["verdict"] in {"host-bound", "moderately host-bound", "device-bound"}
    assert document["echo"]["factor"] == 2
    assert document["echo"]["insert_point"] == "after_augment"
    assert document["config"]["batch_size"] == 8 and document["config"]["seed"] == 11
    assert document["data"]["records"] == 48 and document["data"]["generated"] is False
    assert document["accelerator"]["step_seconds"] == 0.02
    for key in ("counts", "throughput", "accelerator_utilization", "verdict", "steps"):
        assert key in document["baseline"]


def test_counts_are_exact(document, steps):
    assert document["counts"]["steps"] == 12
    assert document["counts"]["trained_examples"] == 96
    own = steps[steps["phase"] == "run"]
    assert own["trained_examples"].tolist() == [8] * 12
    assert own["fresh_examples"].sum() == document["counts"]["fresh_examples"]
    # 120 uses of 60 examples entered the shuffle behind the echo, and 24 of the uses are in it still.
    assert 60 - 24 <= document["counts"]["fresh_examples"] <= 60
    assert document["counts"]["repeated_examples"] == 96 - document["counts"]["fresh_examples"]
    assert document["baseline"]["counts"]["trained_examples"] == 96
    assert document["baseline"]["counts"]["repeated_examples"] == 0


@pytest.mark.parametrize("phase", ["run", "baseline"])
def test_rates_and_utilization_follow_from_the_steps_alone(document, steps, phase):
    figures = document if phase == "run" else document["baseline"]
    measured = steps[(steps["phase"] == phase) & ~steps["warm_up"]]
    assert len(measured) == figures["counts"]["measured_steps"] == 11
    assert figures["throughput"]["warm_up_steps"] == 1
    busy, wait = measured["step_seconds"].sum(), measured["wait_seconds"].sum()
    assert figures["accelerator_utilization"] == pytest.approx(busy / (busy + wait), rel=1e-6)
    # The columns are rounded to the nanosecond; waits and steps over the measured steps add up to the span.
    assert figures["throughput"]["measured_seconds"] == pytest.approx(busy + wait, abs=1e-6)
    for kind in ("trained", "fresh"):
        rate = measured[f"{kind}_examples"].sum() / (busy + wait)
        assert figures["throughput"][f"{kind}_examples_per_second"] == pytest.approx(rate, rel=1e-6)


def test_the_verdict_follows_from_the_utilization(document):
    waiting = 1 - document["accelerator_utilization"]
    expected = (
        "host-bound" if waiting >= 0.2 else "moderately host-bound" if waiting >= 0.05 else "device-bound"
    )
    assert document["verdict"] == expected
    assert document["verdict_text"].startswith(expected.capitalize())


def test_an_emulated_step_takes_its_step_time(document, steps):
    assert steps["step_seconds"].tolist() == pytest.approx([0.02] * 24)


def test_time_never_runs_backwards_and_waits_fill_the_gaps(document):
    for figures in (document, document["baseline"]):
        columns = pd.DataFrame(figures["steps"])
        assert (columns["wait_seconds"] >= 0).all()
        gaps = columns["start_seconds"].iloc[1:].to_numpy() - columns["end_seconds"].iloc[:-1].to_numpy()
        assert columns["wait_seconds"].iloc[1:].to_numpy() == pytest.approx(gaps, abs=1e-9)


def test_arrivals_lie_inside_their_steps(document):
    ends = document["steps"]["end_seconds"]
    assert document["upstream_arrivals_seconds"]
    for index, times in document["upstream_arrivals_seconds"]:
        assert times == sorted(times)
        assert all(ends[index - 1] < time <= ends[index] for time in times)


def test_the_prediction_stands_beside_the_measurement_with_its_error(document):
    made = document["prediction"]
    measured = document["throughput"]["trained_examples_per_second"]
    assert made["measured_trained_examples_per_second"] == measured
    assert made["error"] == pytest.approx(made["trained_examples_per_second"] / measured - 1)
    # Never more than the device gives: 8 images in 20 ms.
    assert 0 < made["trained_examples_per_second"] <= 400 * 1.001


def test_the_report_shows_the_records_figures(job, document):
    page = (job[0] / "report.html").read_text()
    text = re.sub(r"<[^>]+>", " ", re.sub(r"<svg.*?</svg>", " ", page, flags=re.DOTALL))
    words = " ".join(text.split())
    assert f"{document['accelerator_utilization'] * 100:.1f} %" in words
    assert f"{document['baseline']['accelerator_utilization'] * 100:.1f} %" in words
    for count in ("fresh_examples", "trained_examples", "repeated_examples"):
        assert f" {document['counts'][count]} " in words
    assert "echo 2 after_augment" in words
    assert "my data" in words
    assert document["created_at"] in words or document["created_at"][:10] in words


def test_the_report_is_drawn_again_from_the_record_alone(job, cli_invoke, tmp_path):
    (tmp_path / "result.json").write_bytes((job[0] / "result.json").read_bytes())
    again = cli_invoke("report", tmp_path)
    assert again.exit_code == 0, again.stderr
    assert {path.name for path in tmp_path.iterdir()} == FILES
    for name in ("steps.csv", "report.html"):
        assert (tmp_path / name).read_bytes() == (job[0] / name).read_bytes()
    figures = [pd.read_csv(io.BytesIO((folder / "steps.csv").read_bytes())) for folder in (tmp_path, job[0])]
    pd.testing.assert_frame_equal(*figures)


def test_the_command_in_the_record_repeats_the_run(
    document, cli_invoke, tmp_path, short_probes, without_charts
):
    program, *words = shlex.split(document["command"])
    assert program == "pipebench"
    # The folder is left to the one who repeats: the first run's is taken.
    assert "--output" not in words
    again = cli_invoke(*words, "--output", tmp_path / "again")
    assert again.exit_code == 0, again.stderr
    repeated = json.loads((tmp_path / "again" / "result.json").read_text())
    assert repeated["config"] == document["config"]
    assert repeated["counts"]["trained_examples"] == document["counts"]["trained_examples"]
    assert shlex.split(repeated["command"]) == ["pipebench", *words]


def run_fast(cli_invoke, data_dir, folder, *words):
    """A run without baseline on an emulated device of 1 ms, over small images."""
    return cli_invoke(
        "run", "--data-dir", data_dir, "--batch-size", 8, "--image-size", 16, "--trainer", "emulated",
        "--step-time-seconds", 0.001, "--no-baseline", "--output", folder, *words,
    )  # fmt: skip


def test_without_json_the_screen_shows_verdict_rates_and_where_the_report_is(
    cli_invoke, data_dir, tmp_path, without_charts
):
    result = run_fast(cli_invoke, data_dir, tmp_path / "out", "--epochs", 1)
    assert result.exit_code == 0, result.stderr
    words = " ".join(result.stdout.split())
    for word in ("Trained examples/s", "Fresh examples/s", "AU", "Emulated accelerator", "out/report.html"):
        assert word in words
    assert "Run on emulated tpu-v2-8" in result.stderr


def test_a_seed_that_was_drawn_is_in_the_command(cli_invoke, data_dir, tmp_path, without_charts):
    assert run_fast(cli_invoke, data_dir, tmp_path / "out", "--steps", 2).exit_code == 0
    document = json.loads((tmp_path / "out" / "result.json").read_text())
    words = shlex.split(document["command"])
    assert words[words.index("--seed") + 1] == str(document["config"]["seed"])


def test_a_run_by_seconds_measures_at_least_that_long(cli_invoke, data_dir, tmp_path, without_charts):
    words = ["--seconds", 0.3, "--warmup-seconds", 0, "--warmup-steps", 3]
    result = run_fast(cli_invoke, data_dir, tmp_path / "out", *words)
    assert result.exit_code == 0, result.stderr
    document = json.loads((tmp_path / "out" / "result.json").read_text())
    assert document["throughput"]["measured_seconds"] >= 0.3
    assert document["throughput"]["warm_up_steps"] == 3
    last = document["steps"]["end_seconds"]
    # It ended with the first step that met the limit.
    assert last[-2] - last[2] < 0.3 <= last[-1] - last[2]


def test_one_step_alone_has_counts_but_no_verdict(cli_invoke, data_dir, tmp_path, without_charts):
    result = run_fast(cli_invoke, data_dir, tmp_path / "out", "--steps", 1)
    assert result.exit_code == 0
    document = json.loads((tmp_path / "out" / "result.json").read_text())
    assert document["verdict"] is None
    assert document["accelerator_utilization"] is None
    assert document["counts"]["trained_examples"] == 8
    assert "No verdict" in result.stdout


def test_overwrite_replaces_an_earlier_result(cli_invoke, data_dir, tmp_path, without_charts):
    assert run_fast(cli_invoke, data_dir, tmp_path, "--steps", 3).exit_code == 0
    before = (tmp_path / "result.json").read_bytes()
    refused = run_fast(cli_invoke, data_dir, tmp_path, "--steps", 2)
    assert refused.exit_code == 2
    assert f"{tmp_path} is not empty" in refused.stderr and "--overwrite" in refused.stderr
    assert (tmp_path / "result.json").read_bytes() == before
    assert run_fast(cli_invoke, data_dir, tmp_path, "--steps", 2, "--overwrite").exit_code == 0
    assert json.loads((tmp_path / "result.json").read_text())["counts"]["steps"] == 2


def test_a_fraction_counts_the_same_as_its_decimal(cli_invoke, data_dir, tmp_path, without_charts):
    words = ["--epochs", 1, "--echo-factor", 1.5]
    assert run_fast(cli_invoke, data_dir, tmp_path / "out", *words).exit_code == 0
    counts = json.loads((tmp_path / "out" / "result.json").read_text())["counts"]
    assert (counts["fresh_examples"], counts["trained_examples"]) == (48, 72)


@pytest.mark.slow
def test_seed_and_deterministic_give_the_same_losses_twice(cli_invoke, data_dir, tmp_path, without_charts):
    losses = []
    for name in ("first", "second"):
        result = cli_invoke(
            "run", "--data-dir", data_dir, "--trainer", "inception_v3", "--image-size", 75,
            "--width-multiplier", 0.125, "--batch-size", 8, "--echo-factor", 2, "--steps", 6, "--no-baseline",
            "--insert-point", "after_decode", "--seed", 5, "--deterministic", "--output", tmp_path / name,
        )  # fmt: skip
        assert result.exit_code == 0, result.stderr
        losses.append(json.loads((Path(tmp_path) / name / "result.json").read_text())["steps"]["loss"])
    assert len(losses[0]) == 6 and all(loss > 0 for loss in losses[0])
    assert losses[0] == losses[1]
