from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.commands.data_make import command
from echoing.errors import DataError, OptionError
from pipeline.datasets.make import MakeOptions

FAST = ["--examples", "6", "--height", "32", "--width", "48", "--workers", "1"]


def test_the_summary_says_what_was_written(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, [str(tmp_path / "set"), *FAST, "--classes", "2", "--shards", "2"])
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(f"wrote 6 images of 2 classes to {tmp_path}/set: split train, 2 shards, ")
    assert "Making 6 images" in result.stderr
    names = sorted(path.name for path in (tmp_path / "set").iterdir())
    assert names == ["dataset.json", "labels.txt", "train-00000-of-00002", "train-00001-of-00002"]


def test_json_is_alone_on_stdout_and_agrees_with_the_files(tmp_path: Path) -> None:
    arguments = [str(tmp_path / "set"), *FAST, "--split", "validation", "--seed", "3", "--json"]
    result = CliRunner().invoke(command, arguments)
    summary = json.loads(result.stdout)
    sizes = [path.stat().st_size for path in (tmp_path / "set").glob("validation-*")]
    assert (summary["records"], summary["classes"], summary["size_bytes"]) == (6, 10, sum(sizes))
    assert len(summary["shards"]) == 6
    assert (summary["options"]["split"], summary["options"]["seed"]) == ("validation", 3)


def test_the_defaults_are_those_of_the_library() -> None:
    defaults = {parameter.name: parameter.default for parameter in command.params}
    assert {field.name for field in dataclasses.fields(MakeOptions)} < set(defaults)
    for name in ("examples", "classes", "height", "width", "quality", "split", "seed"):
        assert defaults[name] == getattr(MakeOptions(), name), name


def test_an_existing_split_is_refused_without_overwrite(tmp_path: Path) -> None:
    assert CliRunner().invoke(command, [str(tmp_path), *FAST]).exit_code == 0
    again = CliRunner().invoke(command, [str(tmp_path), *FAST])
    assert isinstance(again.exception, DataError)
    assert "--overwrite" in str(again.exception)
    assert CliRunner().invoke(command, [str(tmp_path), *FAST, "--overwrite"]).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--examples", "0"], "--examples"),
        (["--examples="], "--examples"),
        (["--classes", "1081"], "1<=x<=1080"),
        (["--quality", "101"], "--quality"),
        (["--workers", "0"], "--workers"),
        (["--seed", "-1"], "--seed"),
        (["--split", ""], "--split"),
        (["--exmaples", "3"], "--exmaples"),
        (["stray"], "stray"),
    ],
)
def test_wrong_arguments_are_usage_errors_that_name_them(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    result = CliRunner().invoke(command, [str(tmp_path / "set"), *arguments])
    assert result.exit_code == 2
    assert words in result.stderr
    assert not (tmp_path / "set").exists()


def test_an_empty_folder_name_is_a_usage_error() -> None:
    assert CliRunner().invoke(command, [""]).exit_code == 2


@pytest.mark.parametrize(
    "arguments", [["--height", "8"], ["--width", "9999"], ["--shards", "7"], ["--split", "a/b"]]
)
def test_values_that_the_library_refuses_write_nothing(tmp_path: Path, arguments: list[str]) -> None:
    result = CliRunner().invoke(command, [str(tmp_path / "set"), *FAST, *arguments])
    assert isinstance(result.exception, OptionError)
    assert arguments[1] in str(result.exception)
    assert not (tmp_path / "set").exists()


def test_the_help_has_an_example_and_the_modules_import_nothing_heavy() -> None:
    result = CliRunner().invoke(command, ["--help"])
    assert "Example: pipebench data make" in result.output
    code = (
        "import sys, bench.commands.data_make, bench.commands.data_convert; "
        "print([name for name in ('tensorflow', 'numpy', 'PIL', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
