import dataclasses
import io
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from echoing.errors import DataError, OptionError
from pipeline.dataset_info import read_dataset_info
from pipeline.datasets.make import MakeOptions, make_dataset
from pipeline.labels import read_labels

Reader = Callable[..., list[dict[str, Any]]]

SMALL = MakeOptions(examples=12, classes=3, height=48, width=64, workers=1)
TWO_WORKERS = dataclasses.replace(SMALL, examples=40, workers=2)
"""Enough examples for the second process to be worth its start."""


def make(out: Path | str, base: MakeOptions = SMALL, **changes: Any) -> Any:
    return make_dataset(dataclasses.replace(base, **changes), str(out))


def test_the_set_is_whole_and_its_fields_fit_the_pixels(tmp_path: Path, read_records: Reader) -> None:
    info = make(tmp_path)
    records = read_records(tmp_path)
    names = read_labels(str(tmp_path))
    assert names is not None and len(names) == 3
    assert len(records) == 12
    assert Counter(record["image/class/label"][0] for record in records) == {1: 4, 2: 4, 3: 4}
    for record in records:
        image = Image.open(io.BytesIO(record["image/encoded"][0]))
        assert (image.format, image.mode) == ("JPEG", "RGB")
        assert image.size == (record["image/width"][0], record["image/height"][0])
        label = record["image/class/label"][0]
        assert record["image/class/text"] == [names[label - 1].encode()]
        assert record["image/object/bbox/label"] == [label]
        assert 0 <= record["image/object/bbox/xmin"][0] < record["image/object/bbox/xmax"][0] <= 1
    assert len({record["image/filename"][0] for record in records}) == 12
    assert len({record["image/encoded"][0] for record in records}) == 12
    assert info == read_dataset_info(str(tmp_path))
    assert info.source == "generated"
    assert [shard.name for shard in info.splits["train"]] == [f"train-{i:05d}-of-00008" for i in range(8)]
    assert info.options["train"] == {
        "examples": 12,
        "classes": 3,
        "height": 48,
        "width": 64,
        "fixed_size": False,
        "quality": 93,
        "shards": 8,
        "split": "train",
        "seed": 0,
    }


def test_workers_and_shards_change_no_record(tmp_path: Path, read_records: Reader) -> None:
    make(tmp_path / "one", TWO_WORKERS, workers=1)
    make(tmp_path / "two", TWO_WORKERS)
    make(tmp_path / "shards", TWO_WORKERS, workers=1, shards=3)
    one = read_records(tmp_path / "one")
    assert len(one) == 40
    assert one == read_records(tmp_path / "two") == read_records(tmp_path / "shards")
    for name in ("train-00000-of-00008", "train-00007-of-00008", "labels.txt", "dataset.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_more_examples_of_one_seed_begin_with_the_same_ones(tmp_path: Path, read_records: Reader) -> None:
    make(tmp_path / "few", examples=4)
    make(tmp_path / "many", examples=9)
    assert read_records(tmp_path / "many")[:4] == read_records(tmp_path / "few")


def test_seeds_and_splits_differ(tmp_path: Path, read_records: Reader) -> None:
    make(tmp_path / "a")
    make(tmp_path / "a", split="validation")
    make(tmp_path / "b", seed=1)
    images = [
        record["image/encoded"][0]
        for records in (
            read_records(tmp_path / "a"),
            read_records(tmp_path / "a", "validation"),
            read_records(tmp_path / "b"),
        )
        for record in records
    ]
    assert len(set(images)) == 36


def test_a_second_split_keeps_the_first_and_must_have_its_classes(tmp_path: Path) -> None:
    first = make(tmp_path)
    with pytest.raises(DataError, match="another split with 3 classes"):
        make(tmp_path, split="validation", classes=4)
    info = make(tmp_path, split="validation", examples=2)
    assert info.splits["train"] == first.splits["train"]
    assert [shard.records for shard in info.splits["validation"]] == [1, 1]


def test_an_existing_split_is_replaced_only_on_request(tmp_path: Path, read_records: Reader) -> None:
    make(tmp_path)
    with pytest.raises(DataError, match="--overwrite"):
        make(tmp_path, examples=2)
    assert len(read_records(tmp_path)) == 12
    make(tmp_path, examples=2, classes=5, overwrite=True)
    assert len(read_records(tmp_path)) == 2
    labels = read_labels(str(tmp_path))
    assert labels is not None and len(labels) == 5


@pytest.mark.parametrize("workers", [1, 2])
def test_ctrl_c_leaves_no_file_and_no_process(tmp_path: Path, workers: int) -> None:
    import multiprocessing

    def interrupt(done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    options = dataclasses.replace(TWO_WORKERS, workers=workers)
    with pytest.raises(KeyboardInterrupt):
        make_dataset(options, str(tmp_path), interrupt)
    assert list(tmp_path.iterdir()) == []
    assert multiprocessing.active_children() == []


def test_progress_counts_every_image(tmp_path: Path) -> None:
    calls: list[tuple[int, int]] = []
    options = dataclasses.replace(SMALL, examples=3)
    make_dataset(options, str(tmp_path), lambda done, total: calls.append((done, total)))
    assert calls == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.slow
def test_workers_start_from_a_plain_script_too(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from pipeline.datasets.make import MakeOptions, make_dataset\n"
        "if __name__ == '__main__':\n"
        "    options = MakeOptions(examples=33, height=16, width=16, workers=2)\n"
        f"    print(len(make_dataset(options, {str(tmp_path / 'out')!r}).splits['train']))\n"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(root), "PATH": "", "TF_CPP_MIN_LOG_LEVEL": "2"},
    )
    assert done.stdout.strip() == "8", done.stderr


@pytest.mark.slow
def test_a_script_without_a_main_guard_gets_one_clear_error(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from pipeline.datasets.make import MakeOptions, make_dataset\n"
        "options = MakeOptions(examples=33, height=16, width=16, workers=2)\n"
        f"make_dataset(options, {str(tmp_path / 'out')!r})\n"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(root), "PATH": "", "TF_CPP_MIN_LOG_LEVEL": "2"},
    )
    assert done.returncode == 1
    assert "Set workers to 1" in done.stderr.strip().splitlines()[-1]
    assert not list((tmp_path / "out").glob("*"))


def test_remote_folders_work(read_records: Reader) -> None:  # CL-03
    make("ram://make-test/set", examples=3)
    assert len(read_records("ram://make-test/set")) == 3


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("examples", 0),
        ("examples", -1),
        ("examples", 2.5),
        ("examples", True),
        ("classes", 0),
        ("classes", 1081),
        ("height", 15),
        ("width", 4097),
        ("quality", 0),
        ("quality", 101),
        ("shards", 0),
        ("shards", 13),  # more than examples
        ("workers", 0),
        ("seed", -1),
        ("split", "a/b"),
    ],
)
def test_options_out_of_range_are_refused_with_the_value(option: str, value: object) -> None:
    with pytest.raises(OptionError, match=f"^{option} is ") as caught:
        dataclasses.replace(SMALL, **{option: value})
    assert repr(value) in str(caught.value)


def test_options_that_are_wrong_are_refused_without_tensorflow() -> None:
    code = (
        "import sys\nfrom echoing.errors import OptionError\nfrom pipeline.datasets.make import MakeOptions\n"
        "try: MakeOptions(examples=0)\nexcept OptionError: print('tensorflow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.slow
def test_a_small_network_learns_the_classes_and_a_mean_colour_does_not(
    tmp_path: Path, read_records: Reader
) -> None:
    """Chance is 0.1: the network must reach 0.4 on held-out images, the mean colour must stay below 0.2."""
    import keras

    options = MakeOptions(examples=600, height=64, width=64, fixed_size=True)
    make(tmp_path, options)
    make(tmp_path, options, split="validation", examples=300)

    def load(split: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        records = read_records(tmp_path, split)
        pixels = [np.asarray(Image.open(io.BytesIO(record["image/encoded"][0]))) for record in records]
        labels = [record["image/class/label"][0] - 1 for record in records]
        return np.stack(pixels).astype(np.float32) / 127.5 - 1, np.array(labels)

    (images, labels), (held_out, truth) = load("train"), load("validation")
    keras.utils.set_random_seed(0)
    layers = keras.layers
    network = keras.Sequential([layers.Input((64, 64, 3))])
    for filters in (16, 32, 48):
        network.add(layers.Conv2D(filters, 3, padding="same", use_bias=False))
        network.add(layers.BatchNormalization())
        network.add(layers.ReLU())
        network.add(layers.MaxPool2D())
    network.add(layers.Conv2D(64, 3, activation="relu"))
    network.add(layers.GlobalMaxPool2D())
    network.add(layers.Dense(10))
    network.compile(
        keras.optimizers.Adam(2e-3),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    network.fit(images, labels, epochs=16, batch_size=32, verbose=0)
    network_accuracy = network.evaluate(held_out, truth, verbose=0)[1]

    colours, held_out_colours = images.mean(axis=(1, 2)), held_out.mean(axis=(1, 2))
    centres = np.stack([colours[labels == label].mean(axis=0) for label in range(10)])
    guesses = np.argmin(((held_out_colours[:, None] - centres) ** 2).sum(axis=2), axis=1)
    colour_accuracy = (guesses == truth).mean()
    assert colour_accuracy < 0.2
    assert network_accuracy > 0.4
