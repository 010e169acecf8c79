"""The comparison of pipelines on the screen and on disk, from figures built by hand."""

import csv
import io

import pytest
from rich.console import Console

from bench.pipelines.comparison import Comparison, Measured, Round
from bench.pipelines.variants import Variant
from bench.reporters import pipeline_comparison_chart
from bench.reporters.pipeline_comparison import comparison_csv, comparison_table, write_comparison


def measured(name, *rates, output="uint8", error="", peak=1_500_000_000):
    rounds = [Round(int(rate * 2), 2.0, cpu_seconds=4.0, peak_memory_bytes=peak) for rate in rates]
    return Measured(Variant(name, "", "module", output), rounds, error)


@pytest.fixture
def comparison():
    return Comparison(
        [
            measured("reference", 100.0, 125.0, output="float32"),
            measured("ours_uint8", 300.0, 350.0),
            measured("crop_decode", 400.0, 500.0, output="none"),
            measured("grain", error="it ended with exit code 1: \x1b[31mno luck"),
        ]
    )


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def shown(renderable, width=100):
    console = Console(width=width, file=io.StringIO())
    console.print(renderable)
    return console.file.getvalue().splitlines()


def test_csv_has_a_row_a_variant_with_medians(comparison):
    text = comparison_csv(comparison)
    assert text.splitlines()[0] == (
        "variant,output,images_per_second,ratio_to_reference,ratio_to_reference_lowest,"
        "ratio_to_reference_highest,ratio_to_crop_decode,cpu_seconds_per_image,peak_memory_bytes,rounds"
    )
    reference, ours, limit, grain = rows(text)
    assert reference["ratio_to_reference"] == "1.0"
    assert ours == {
        "variant": "ours_uint8",
        "output": "uint8",
        "images_per_second": "325.0",
        "ratio_to_reference": "2.9",  # of 3.0 and 2.8
        "ratio_to_reference_lowest": "2.8",
        "ratio_to_reference_highest": "3.0",
        "ratio_to_crop_decode": "0.725",  # of 0.75 and 0.7
        "cpu_seconds_per_image": "0.00619",  # of 4/600 and 4/700
        "peak_memory_bytes": "1500000000",
        "rounds": "2",
    }
    assert limit["ratio_to_crop_decode"] == "1.0"
    assert set(grain.values()) == {"grain", "uint8", "", "0"}


def test_csv_without_reference_and_limit_has_empty_ratios():
    (row,) = rows(comparison_csv(Comparison([measured("tuned", 100.0, peak=None)])))
    assert row["images_per_second"] == "100.0"
    assert row["ratio_to_reference"] == row["ratio_to_reference_highest"] == row["ratio_to_crop_decode"] == ""
    assert row["peak_memory_bytes"] == ""


def test_table_shows_figures_and_what_failed_and_what_is_missing(comparison):
    absent = [Variant("dali", "", "m", "uint8", ("nvidia.dali",), ("nvidia-dali-cuda120",))]
    lines = shown(comparison_table(comparison, absent))
    assert lines[0].split() == [
        "variant",
        "images/s",
        "ratio",
        "from",
        "to",
        "to",
        "limit",
        "CPU/image",
        "memory",
    ]
    assert lines[2].split() == [
        "ours_uint8", "325", "2.90×", "2.80×", "3.00×", "0.725×", "6.19", "ms", "1.50", "GB"
    ]  # fmt: skip
    assert lines[4].split() == ["grain", *["n/a"] * 7]
    text = " ".join(lines)
    assert r"grain failed after 0 rounds: it ended with exit code 1: \x1b[31mno luck" in text
    assert "Not installed: dali (pip install nvidia-dali-cuda120)." in text
    assert "Ratio: to the reference's images/s of the same round" in text


def test_table_fits_a_terminal_of_80_columns(comparison):
    assert max(map(len, shown(comparison_table(comparison, []), width=80)[:5])) <= 80


def test_table_warns_of_unsteady_rounds():
    lines = shown(comparison_table(Comparison([measured("reference", 100.0, 200.0)]), []))
    assert any(line.startswith("Warning: The fastest round is far from") for line in lines)


def test_all_files_are_written_in_the_order_of_worth(comparison, tmp_path):
    warnings = []
    written = write_comparison(comparison, "{}\n", str(tmp_path), warnings.append)
    assert written == [str(tmp_path / name) for name in ("pipeline.json", "pipeline.csv", "pipeline.png")]
    assert (tmp_path / "pipeline.json").read_text() == "{}\n"
    assert (tmp_path / "pipeline.csv").read_text() == comparison_csv(comparison)
    assert (tmp_path / "pipeline.png").read_bytes().startswith(b"\x89PNG")
    assert warnings == []


def test_without_ratios_an_old_chart_is_removed(tmp_path):
    (tmp_path / "pipeline.png").write_bytes(b"old")
    write_comparison(Comparison([measured("tuned", 100.0)]), "{}", str(tmp_path), pytest.fail)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipeline.csv", "pipeline.json"]


def test_chart_that_cannot_be_drawn_costs_no_figures(comparison, tmp_path, monkeypatch):
    def fail(comparison):
        raise RuntimeError("no ink")

    monkeypatch.setattr(pipeline_comparison_chart, "comparison_figure", fail)
    warnings = []
    written = write_comparison(comparison, "{}", str(tmp_path), warnings.append)
    assert [path.rsplit("/", 1)[1] for path in written] == ["pipeline.json", "pipeline.csv"]
    assert warnings == ["No chart was drawn: RuntimeError: no ink"]
