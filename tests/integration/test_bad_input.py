"""Every kind of wrong data, through the command line: exit code, message, and nothing that hangs."""

import gzip
import json
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

FAST = [
    "--batch-size", "4", "--image-size", "16", "--trainer", "emulated", "--step-time-seconds", "0.001",
    "--epochs", "1", "--no-baseline",
]  # fmt: skip

SHARD = "train-00000-of-00001"


@pytest.fixture
def run(cli_invoke, tmp_path, without_charts):
    """Returns a function that runs over a data folder; later options win over the fast ones."""
    return lambda data, *words: cli_invoke(
        "run", "--data-dir", data, *FAST, "--output", tmp_path / "out", *words
    )


@pytest.fixture
def result_of(tmp_path):
    return lambda: json.loads((tmp_path / "out" / "result.json").read_text())


def one_error(result):
    """Returns the one line of a user error and checks that it is all there is of it."""
    assert result.exit_code == 2, (result.stdout, result.stderr)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert result.stderr.splitlines()[-1] == line
    return line


def spans(path):
    """Returns offset and payload length of each record, by the format's own description."""
    content, found, offset = Path(path).read_bytes(), [], 0
    while offset < len(content):
        (length,) = struct.unpack_from("<Q", content, offset)
        found.append((offset, length))
        offset += 12 + length + 4
    return found


# DP-08: a typo, an empty folder and a folder of other files need three different answers.


def test_a_missing_folder_is_answered_with_what_is_beside_it(run, make_shards, tmp_path):
    make_shards(tmp_path / "photos", records=4)
    line = one_error(run(tmp_path / "fotos"))
    assert f"The data folder {tmp_path / 'fotos'} does not exist" in line
    assert "photos" in line.split("does not exist")[1]


def test_an_empty_folder_is_called_empty(run, tmp_path):
    (tmp_path / "data").mkdir()
    assert f"The data folder {tmp_path / 'data'} is empty" in one_error(run(tmp_path / "data"))


def test_a_folder_of_another_split_is_answered_with_the_splits_that_are_there(
    run, make_record, put_shards, tmp_path
):
    data = put_shards(tmp_path / "data", [[make_record(0)]], split="validation")
    line = one_error(run(data))
    assert "No shard of the split 'train'" in line and "'validation' (1 shards)" in line


def test_a_pattern_that_matches_nothing_is_shown_with_what_is_there(run, small_data):
    line = one_error(run(small_data, "--file-pattern", "*.tfrecord"))
    assert "matches the pattern '*.tfrecord'" in line and "train-00000-of-00002" in line


def test_a_pattern_that_matches_one_shard_reads_that_one(run, small_data, result_of):
    assert run(small_data, "--file-pattern", "*-00001-of-*").exit_code == 0
    assert result_of()["counts"]["fresh_examples"] == 4


def test_a_file_in_place_of_the_folder_is_called_a_file(run, tmp_path):
    (tmp_path / "data").write_bytes(b"x")
    assert "is a file" in one_error(run(tmp_path / "data"))


def test_a_missing_shard_is_named(run, make_shards, tmp_path):
    data = make_shards(tmp_path / "data", records=6, shards=3)
    Path(data, "train-00001-of-00003").unlink()
    assert "train-00001-of-00003" in one_error(run(data))


# TR: TFRecord files.


@pytest.mark.parametrize("cut", ["payload", "header"])
def test_a_truncated_shard_is_named_with_the_record_before_the_run_starts(run, make_shards, tmp_path, cut):
    data = make_shards(tmp_path / "data", records=3)
    path = Path(data, SHARD)
    offset, length = spans(path)[2]
    path.write_bytes(path.read_bytes()[: offset + (12 + length // 2 if cut == "payload" else 5)])
    result = run(data)
    line = one_error(result)
    assert f"{SHARD}, record 2 (offset {offset} bytes)" in line
    assert "Run on" not in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_shard_cut_between_two_records_counts_what_is_there(run, make_shards, tmp_path, result_of):
    data = make_shards(tmp_path / "data", records=5)
    path = Path(data, SHARD)
    path.write_bytes(path.read_bytes()[: spans(path)[4][0]])
    assert run(data).exit_code == 0
    assert result_of()["data"]["records"] == 4
    assert result_of()["counts"]["fresh_examples"] == 4


def test_a_shard_cut_between_two_records_is_noticed_where_its_count_was_recorded(run, cli_invoke, tmp_path):
    data = tmp_path / "data"
    words = ["--examples", 4, "--shards", 1, "--height", 32, "--width", 32, "--workers", 1]
    assert cli_invoke("data", "make", data, *words).exit_code == 0
    path = data / SHARD
    path.write_bytes(path.read_bytes()[: spans(path)[3][0]])
    assert "dataset.json recorded" in one_error(run(data))


def test_an_empty_shard_among_good_ones_is_named_in_a_warning(run, make_shards, tmp_path, result_of):
    data = make_shards(tmp_path / "data", records=6, shards=3)
    Path(data, "train-00001-of-00003").write_bytes(b"")
    result = run(data)
    assert result.exit_code == 0
    assert "Warning: the shard train-00001-of-00003 is empty" in result.stderr
    assert result_of()["data"]["records"] == 4
    assert any("train-00001-of-00003" in warning for warning in result_of()["warnings"])


def test_empty_shards_alone_are_an_error(run, tmp_path):
    (tmp_path / "data").mkdir()
    for index in range(3):
        (tmp_path / "data" / f"train-{index:05d}-of-00003").write_bytes(b"")
    assert "no records" in one_error(run(tmp_path / "data"))


@pytest.mark.parametrize("compressed", [(0,), (0, 1)])
def test_gzip_shards_are_read_like_plain_ones(run, make_shards, tmp_path, result_of, compressed):
    data = make_shards(tmp_path / "data", records=8, shards=2)
    for index in compressed:
        path = Path(data, f"train-{index:05d}-of-00002")
        path.write_bytes(gzip.compress(path.read_bytes()))
    assert run(data).exit_code == 0
    assert result_of()["data"]["records"] == 8
    assert result_of()["counts"]["fresh_examples"] == 8


def test_foreign_files_beside_the_shards_are_left_out_and_listed(run, make_shards, tmp_path, result_of):
    data = make_shards(tmp_path / "data", records=4, shards=2)
    foreign = ["README.txt", "_SUCCESS", "train-00000-of-00002.idx", ".train-00000-of-00002.swp"]
    for name in foreign:
        Path(data, name).write_bytes(b"")
    Path(data, "tmp").mkdir()
    result = run(data)
    assert result.exit_code == 0
    for name in [*foreign, "tmp/"]:
        assert name in result.stderr
    assert result_of()["counts"]["fresh_examples"] == 4


def flip_a_payload_byte(path, record):
    content = bytearray(Path(path).read_bytes())
    offset, length = spans(path)[record]
    content[offset + 12 + length // 2] ^= 0xFF
    Path(path).write_bytes(content)
    return offset


def test_a_corrupt_payload_is_named_by_shard_record_and_offset(run, make_shards, tmp_path):
    data = make_shards(tmp_path / "data", records=8)
    offset = flip_a_payload_byte(Path(data, SHARD), 5)
    line = one_error(run(data))
    assert f"{SHARD}, record 5 (offset {offset} bytes)" in line
    assert "checksum" in line and "--on-bad-record skip" in line


def test_with_skip_a_corrupt_payload_costs_the_rest_of_its_shard_and_is_counted(
    run, make_shards, tmp_path, result_of
):
    # TensorFlow's reader gives a shard up at a damaged record, so 5, 6 and 7 of the first shard are lost.
    data = make_shards(tmp_path / "data", records=16, shards=2)
    flip_a_payload_byte(Path(data, "train-00000-of-00002"), 5)
    result = run(data, "--on-bad-record", "skip", "--batch-size", 1)
    assert result.exit_code == 0, result.stderr
    assert result_of()["counts"]["fresh_examples"] == 13
    assert result_of()["counts"]["skipped_records"] == 3
    assert result_of()["data"]["skipped_records"] == 3
    assert any("3 unusable records" in warning for warning in result_of()["warnings"])


def test_debug_shows_where_a_bad_record_was_met(cli_invoke, make_shards, tmp_path):
    data = make_shards(tmp_path / "data", records=8)
    flip_a_payload_byte(Path(data, SHARD), 5)
    result = cli_invoke("--debug", "run", "--data-dir", data, *FAST, "--output", tmp_path / "out")
    assert result.exit_code == 2
    assert "Traceback" in result.stderr and "DataLossError" in result.stderr
    assert result.stderr.splitlines()[-1].startswith(f"Error: {SHARD}, record 5")


# SC: the schema.


def without_keys():
    features = {
        "image_raw": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"\xff\xfe"])),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[1])),
    }
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


@pytest.mark.parametrize("point", ["after_read", "after_augment"])
def test_a_record_without_the_keys_is_named_with_those_missing_and_found(
    run, make_record, put_shards, tmp_path, point
):
    data = put_shards(tmp_path / "data", [[make_record(0), make_record(1), without_keys(), make_record(3)]])
    line = one_error(run(data, "--echo-factor", 2, "--insert-point", point))
    assert f"{SHARD}, record 2" in line
    for key in ("image/encoded", "image/class/label", "image_raw", "label"):
        assert key in line


@pytest.mark.parametrize(
    "payload", [b"no example at all", b"\xff\xfe\xfd", b""], ids=["text", "bytes", "empty"]
)
def test_a_record_that_is_no_example_is_named(run, make_record, put_shards, tmp_path, payload):
    data = put_shards(tmp_path / "data", [[make_record(0), payload, make_record(2), make_record(3)]])
    assert f"{SHARD}, record 1" in one_error(run(data))


@pytest.mark.parametrize("encoded", [b"", b"no picture", "cut"], ids=["empty", "text", "cut"])
def test_an_undecodable_image_is_named(run, make_record, put_shards, tmp_path, encoded):
    if encoded == "cut":
        whole = tf.train.Example.FromString(make_record(1))
        encoded = whole.features.feature["image/encoded"].bytes_list.value[0][:200]
    records = [make_record(0), make_record(1, encoded=encoded), make_record(2), make_record(3)]
    assert f"{SHARD}, record 1" in one_error(run(put_shards(tmp_path / "data", [records])))


@pytest.mark.parametrize(
    "factor, point", [(1, "after_augment"), (2, "after_read"), (3, "after_decode"), (2, "after_batch")]
)
def test_with_skip_each_bad_record_counts_once_whatever_the_echo(
    run, make_record, put_shards, tmp_path, result_of, factor, point
):
    records = [make_record(index) for index in range(10)]
    records[2], records[7] = make_record(2, encoded=b"no picture"), without_keys()
    data = put_shards(tmp_path / "data", [records])
    words = ["--on-bad-record", "skip", "--echo-factor", factor, "--insert-point", point]
    result = run(data, *words)
    assert result.exit_code == 0, result.stderr
    assert result_of()["counts"]["skipped_records"] == 2
    assert result_of()["counts"]["fresh_examples"] == 8
    assert result_of()["counts"]["trained_examples"] == 8 * factor


def test_with_skip_and_nothing_usable_the_run_ends_and_names_the_first(make_record, put_shards, tmp_path):
    # In a process of its own, because the fault would be a run without end.
    data = put_shards(tmp_path / "data", [[make_record(i, encoded=b"no picture") for i in range(8)]])
    code = "import sys; from bench.cli import main; main(sys.argv[1:])"
    words = [
        "run", "--data-dir", data, *FAST[:-3], "--steps", "3", "--no-baseline", "--on-bad-record", "skip",
        "--shuffle-buffer-size", "8", "--insert-point", "after_read", "--echo-factor", "2",
        "--output", str(tmp_path / "out"),
    ]  # fmt: skip
    result = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=150, check=False
    )
    assert result.returncode == 2
    assert f"{SHARD}, record 0" in result.stderr.splitlines()[-1]
    assert "--on-bad-record" not in result.stderr


def test_fewer_records_than_a_batch_are_an_error_at_once(run, make_shards, tmp_path):
    # DP-05: with dropped remainders and an endless repeat, this used to be an endless wait elsewhere.
    data = make_shards(tmp_path / "data", records=5)
    result = run(data, "--batch-size", 8)
    assert re.search(r"5 records.*batch 8: no full batch", one_error(result))
    assert run(data, "--batch-size", 8, "--epochs", 2, "--overwrite").exit_code == 2


def test_an_echo_of_examples_may_fill_the_batch(run, make_shards, tmp_path, result_of):
    data = make_shards(tmp_path / "data", records=5)
    assert run(data, "--batch-size", 8, "--echo-factor", 2, "--insert-point", "after_decode").exit_code == 0
    assert result_of()["counts"]["trained_examples"] == 8


def test_a_box_in_pixels_is_refused_where_boxes_are_used_and_only_there(
    run, put_shards, make_record, tmp_path
):
    from pipeline.schema import Box

    records = [make_record(0), make_record(1, boxes=[Box(0, 0, 40, 60)]), make_record(2), make_record(3)]
    data = put_shards(tmp_path / "data", [records])
    line = one_error(run(data, "--use-annotated-boxes"))
    assert f"{SHARD}, record 1" in line and "pixel" in line
    assert run(data, "--overwrite").exit_code == 0


# The output folder.


def test_an_output_that_is_a_file_is_left_alone(cli_invoke, small_data, tmp_path):
    (tmp_path / "out").write_text("mine")
    result = cli_invoke("run", "--data-dir", small_data, *FAST, "--output", tmp_path / "out", "--overwrite")
    assert f"The output {tmp_path / 'out'} is a file" in one_error(result)
    assert (tmp_path / "out").read_text() == "mine"


def test_an_output_below_a_file_cannot_be_written(cli_invoke, small_data, tmp_path):
    (tmp_path / "file").write_text("mine")
    result = cli_invoke("run", "--data-dir", small_data, *FAST, "--output", tmp_path / "file" / "out")
    line = one_error(result)
    assert "Cannot make the folder" in line and "that you may write to" in line


def test_images_too_small_for_the_real_network_are_refused_before_training(cli_invoke, small_data, tmp_path):
    words = ["--trainer", "inception_v3", "--image-size", 74, "--batch-size", 4, "--output", tmp_path / "out"]
    line = one_error(cli_invoke("run", "--data-dir", small_data, *words))
    assert "image_size is 74" in line and ">= 75" in line


def test_a_step_time_for_real_training_is_refused(run, small_data):
    line = one_error(run(small_data, "--trainer", "inception_v3", "--image-size", 75))
    assert "--step-time-seconds would have no effect" in line


@pytest.mark.slow
def test_labels_outside_the_range_stop_real_training_with_the_range(
    cli_invoke, make_record, put_shards, tmp_path, without_charts
):
    # SC-03: on an accelerator such labels would turn into a NaN.
    data = put_shards(
        tmp_path / "data", [[make_record(i, label=label) for i, label in enumerate([0, 3, 4, -1])]]
    )
    result = cli_invoke(
        "run", "--data-dir", data, "--trainer", "inception_v3", "--image-size", 75,
        "--width-multiplier", 0.125, "--batch-size", 4, "--num-classes", 4, "--steps", 2, "--no-baseline",
        "--output", tmp_path / "out",
    )  # fmt: skip
    line = one_error(result)
    assert "0 to 3" in line and "-1, 4" in line
    assert "nan" not in line.lower()
    checked = cli_invoke("data", "check", data, "--num-classes", 4)
    assert checked.exit_code == 1
    for label in (4, -1):
        assert f"the label is {label}; allowed: 0..3" in checked.stdout
