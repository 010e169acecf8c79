from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from PIL import Image

from bench.commands.data_convert import command
from echoing.errors import DataError, OptionError
from pipeline.datasets.convert_options import SOURCES, ConvertOptions


def jpeg(seed: int = 0) -> bytes:
    buffer = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 256, (8, 12, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(buffer, "JPEG")
    return buffer.getvalue()


@pytest.fixture
def src(tmp_path: Path) -> Path:
    """Three good and two broken pictures of two classes (FC-13)."""
    files = {f"cats/{seed}.jpg": jpeg(seed) for seed in range(2)} | {"red fox/1.JPG": jpeg(3)}
    files |= {"cats/empty.jpg": b"", "red fox/cut.jpg": jpeg(4)[:200], "cats/.DS_Store": b"x"}
    for name, content in files.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "src"


def convert(src: Path, out: Path, *arguments: str) -> Result:
    return CliRunner().invoke(command, [str(src), str(out), "--from", "imagefolder", *arguments])


def test_bad_pictures_fail_the_command_and_are_named(src: Path, tmp_path: Path) -> None:  # FC-13
    result = convert(src, tmp_path / "out")
    assert isinstance(result.exception, DataError)
    assert result.exception.exit_code == 2
    assert "cats/empty.jpg" in str(result.exception) and "red fox/cut.jpg" in str(result.exception)
    assert result.stdout == ""
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["rejected-train.tsv"]


def test_skip_bad_says_what_was_found_written_and_rejected(src: Path, tmp_path: Path) -> None:  # FC-13
    result = convert(src, tmp_path / "out", "--skip-bad")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "found 5, written 3, rejected 2"
    assert "  kept as they are: 3" in lines
    assert "  ignored, hidden or system files: 1" in lines
    assert f"rejected pictures and reasons: {tmp_path}/out/rejected-train.tsv" in lines


def test_json_is_alone_on_stdout(src: Path, tmp_path: Path) -> None:
    result = convert(src, tmp_path / "out", "--skip-bad", "--json", "--shards", "2", "--split", "validation")
    summary = json.loads(result.stdout)
    assert {key: summary[key] for key in ("found", "written", "rejected", "classes", "shards")} == {
        "found": 5,
        "written": 3,
        "rejected": 2,
        "classes": ["cats", "red fox"],
        "shards": ["validation-00000-of-00002", "validation-00001-of-00002"],
    }


def test_warnings_go_to_stderr(src: Path, tmp_path: Path) -> None:  # FC-03
    (src / "empty class").mkdir()
    result = convert(src, tmp_path / "out", "--skip-bad")
    warning = "Warning: 1 class has no picture in split 'train' and keeps its label: 'empty class'"
    assert warning in result.stderr.splitlines()
    assert "Warning" not in result.stdout


def test_idx_files_are_converted(tmp_path: Path) -> None:
    src = tmp_path / "src"
    src.mkdir()
    (src / "t10k-images-idx3-ubyte").write_bytes(b"\0\0\x08\x03\0\0\0\x02\0\0\0\x04\0\0\0\x05" + bytes(40))
    (src / "t10k-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01\0\0\0\x02\x01\x09")
    arguments = [str(src), str(tmp_path / "out"), "--from", "idx", "--split", "test"]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("found 2, written 2, rejected 0\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--from", "zip"], "'zip'"),
        (["--shards", "0"], "--shards"),
        (["--quality", "high"], "--quality"),
        (["--labels", ""], "--labels"),
        (["--boxes="], "--boxes"),
        (["--skipbad"], "--skipbad"),
    ],
)
def test_wrong_arguments_are_usage_errors_that_name_them(
    src: Path, tmp_path: Path, arguments: list[str], words: str
) -> None:
    result = convert(src, tmp_path / "out", *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert not (tmp_path / "out").exists()


def test_the_source_must_be_named(src: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(command, [str(src), str(tmp_path / "out")])
    assert result.exit_code == 2
    assert "--from" in result.stderr


def test_too_many_shards_are_refused_before_anything_is_written(src: Path, tmp_path: Path) -> None:
    result = convert(src, tmp_path / "out", "--skip-bad", "--shards", "9")
    assert isinstance(result.exception, OptionError)
    assert not (tmp_path / "out").exists()


def test_choices_and_defaults_are_those_of_the_library() -> None:
    parameters = {parameter.name: parameter for parameter in command.params}
    assert tuple(parameters["source"].type.choices) == SOURCES  # type: ignore[attr-defined]
    for name in ("split", "seed", "quality"):
        assert parameters[name].default == ConvertOptions.__dataclass_fields__[name].default


def test_the_help_has_an_example() -> None:
    assert "Example: pipebench data convert" in CliRunner().invoke(command, ["--help"]).output
