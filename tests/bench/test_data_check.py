import io
import json
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from PIL import Image

from bench.commands.data_check import command
from echoing.errors import DataError
from pipeline import schema
from pipeline.labels import write_labels


def record(seed, label=1):
    pixels = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).resize((48, 32)).save(buffer, "JPEG")
    return schema.serialize(schema.ImageRecord(buffer.getvalue(), label, "cat", 32, 48, f"{seed}.jpg"))


def write_set(folder, payloads, split="train"):
    with tf.io.TFRecordWriter(f"{folder}/{split}-00000-of-00001") as writer:
        for payload in payloads:
            writer.write(payload)


def invoke(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


@pytest.fixture
def good_folder(tmp_path):
    write_set(tmp_path, [record(0, 1), record(1, 2), record(2, 2)])
    write_labels(str(tmp_path), ["cat", "[red] fox, #1"])
    return tmp_path


def test_a_good_set_exits_with_0_and_says_what_is_in_it(good_folder):
    result = invoke(good_folder)
    assert result.exit_code == 0
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["train", "all", "3"] in lines
    assert ["1", "cat", "1"] in lines
    assert ["2", "[red]", "fox,", "#1", "2"] in lines
    assert ["32", "to", "63", "3"] in lines
    assert "labels found 1..2, allowed 0..2" in result.stdout
    assert result.stdout.rstrip().endswith("3 records, good")


def test_a_problem_exits_with_1_and_is_listed_with_its_place(good_folder):
    (good_folder / "train-00000-of-00001").unlink()
    write_set(good_folder, [record(seed, label) for seed, label in enumerate([0, 3, 4, -1])])
    result = invoke(good_folder, "--num-classes", 4)
    assert result.exit_code == 1
    assert "train-00000-of-00001, record 2 (offset " in result.stdout
    assert "the label is 4; allowed: 0..3" in result.stdout
    assert "train-00000-of-00001, record 3 (offset " in result.stdout
    assert "2 problems: label out of range (2)" in result.stdout
    assert "labels found -1..4, allowed 0..3" in result.stdout
    assert result.stdout.rstrip().endswith("4 records, bad: 2 problems")


def test_warnings_alone_exit_with_0(good_folder):
    write_labels(str(good_folder), ["cat", "dog", "eel"])
    result = invoke(good_folder)
    assert result.exit_code == 0
    assert "1 of 3 classes have no record in the split train: eel (3)" in result.stdout


def test_a_long_list_is_cut_and_the_rest_counted(tmp_path):
    write_set(tmp_path, [record(seed, label=-1) for seed in range(5)])
    result = invoke(tmp_path, "--max-listed", 2)
    assert result.stdout.count("the label is -1") == 2
    assert "and 3 more" in result.stdout
    assert "5 problems: label out of range (5)" in result.stdout
    assert "the label" not in invoke(tmp_path, "--max-listed", 0).stdout


@pytest.mark.parametrize(("labels", "exit_code"), [((1, 2), 0), ((1, -1), 1)])
def test_json_stands_alone_on_stdout(tmp_path, labels, exit_code):
    write_set(tmp_path, [record(seed, label) for seed, label in enumerate(labels)])
    result = invoke(tmp_path, "--json")
    assert result.exit_code == exit_code
    document = json.loads(result.stdout)
    assert document["records"] == 2
    assert document["good"] is (exit_code == 0)


def test_a_split_is_chosen_by_name(good_folder):
    write_set(good_folder, [record(5)], split="validation")
    assert json.loads(invoke(good_folder, "--json").stdout)["splits"] == {"train": 3, "validation": 1}
    chosen = invoke(good_folder, "--json", "--split", "validation")
    assert json.loads(chosen.stdout)["splits"] == {"validation": 1}


def test_files_are_chosen_by_a_pattern(good_folder):
    (good_folder / "train-00000-of-00001").rename(good_folder / "mine.rec")
    assert isinstance(invoke(good_folder).exception, DataError)
    assert json.loads(invoke(good_folder, "--json", "--file-pattern", "*.rec").stdout)["records"] == 3


def test_a_missing_folder_is_a_data_error(tmp_path):
    result = invoke(tmp_path / "typo")
    assert isinstance(result.exception, DataError)
    assert result.exception.exit_code == 2
    assert "does not exist" in str(result.exception)
    assert result.stdout == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("",),
        ("--split", "", "x"),
        ("--num-classes", "0", "x"),
        ("--num-classes", "two", "x"),
        ("--colour", "x"),
        (),
    ],
)
def test_wrong_usage_exits_with_2(arguments):
    assert invoke(*arguments).exit_code == 2


def test_a_terminal_escape_in_a_name_is_shown_and_not_obeyed(good_folder):
    write_labels(str(good_folder), ["\x1b[31mred", "dog"])
    result = invoke(good_folder)
    assert "\x1b" not in result.stdout
    assert "\\x1b[31mred" in result.stdout


def test_the_command_imports_nothing_heavy():
    code = (
        "import sys; import bench.commands.data_check; "
        "print([name for name in ('tensorflow', 'numpy', 'PIL', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
