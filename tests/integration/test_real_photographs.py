"""The whole way on real photographs: cut, convert, check, train, and count every use of every picture.

The pictures are those inside the installed scikit-image package; nothing is loaded from elsewhere.
"""

import collections
import json
from pathlib import Path

import numpy as np
import pytest
import skimage
from PIL import Image

from echoing.insertion_point import InsertionPoint
from pipeline.config import PipelineConfig
from pipeline.input_pipeline import InputPipeline
from trainer.emulation.accelerator import EmulatedAccelerator

PHOTOGRAPHS = {
    "astronaut": "astronaut.png",
    "cat": "chelsea.png",
    "coffee": "coffee.png",
    "galaxies": "hubble_deep_field.jpg",
    "retina": "retina.jpg",
    "rocket": "rocket.jpg",
    "motorcycle": "motorcycle_left.png",
    "tissue": "ihc.png",
    # Grey ones, which the converter has to turn into colour.
    "coins": "coins.png",
    "moon": "moon.png",
}
TILES_PER_PHOTOGRAPH = 6
POINTS = [point.value for point in InsertionPoint]


def cut_tiles(source, folder, seed):
    """Cuts tiles of 48 to 160 pixels a side out of a picture, every other one saved as PNG."""
    generator = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    with Image.open(source) as picture:
        for index in range(TILES_PER_PHOTOGRAPH):
            width, height = (int(side) for side in generator.integers(48, 160, 2))
            left = int(generator.integers(0, picture.width - width))
            top = int(generator.integers(0, picture.height - height))
            tile = picture.crop((left, top, left + width, top + height))
            tile.save(folder / f"tile {index}.{'png' if index % 2 else 'jpg'}")


@pytest.fixture(scope="module")
def photographs(tmp_path_factory, cli_invoke):
    """A converted data folder, the number of its records and of its classes."""
    source = Path(skimage.__file__).parent / "data"
    there = {name: source / file for name, file in PHOTOGRAPHS.items() if (source / file).exists()}
    assert len(there) >= 6, f"scikit-image ships only {sorted(there)}"
    root = tmp_path_factory.mktemp("photographs")
    for seed, (name, path) in enumerate(there.items()):
        cut_tiles(path, root / "pictures" / name, seed)
    converted = cli_invoke(
        "data", "convert", root / "pictures", root / "data", "--from", "imagefolder", "--shards", 4, "--json"
    )
    assert converted.exit_code == 0, converted.stderr
    summary = json.loads(converted.stdout)
    records = TILES_PER_PHOTOGRAPH * len(there)
    assert (summary["found"], summary["written"], summary["rejected"]) == (records, records, 0)
    return root / "data", records, len(there)


@pytest.fixture(scope="module")
def dividing_batch(photographs):
    """A batch size that divides the records."""
    return TILES_PER_PHOTOGRAPH


@pytest.fixture
def train(cli_invoke, photographs, tmp_path, without_charts):
    """Returns a function that trains one epoch and returns the counts of `result.json`."""
    trainers = {
        "emulated": ["--trainer", "emulated", "--step-time-seconds", 0.001, "--image-size", 32],
        "inception_v3": ["--trainer", "inception_v3", "--image-size", 75, "--width-multiplier", 0.125],
    }

    def run(trainer, point, factor, batch_size):
        result = cli_invoke(
            "run", "--data-dir", photographs[0], *trainers[trainer], "--epochs", 1, "--no-baseline",
            "--insert-point", point, "--echo-factor", factor, "--batch-size", batch_size,
            "--shuffle-buffer-size", 40, "--seed", 7, "--output", tmp_path / "out",
        )  # fmt: skip
        assert result.exit_code == 0, result.stderr
        document = json.loads((tmp_path / "out" / "result.json").read_text())
        assert document["complete"] is True
        assert document["counts"]["trained_examples"] == sum(document["steps"]["trained_examples"])
        assert document["counts"]["fresh_examples"] == sum(document["steps"]["fresh_examples"])
        return document["counts"]

    return run


def test_the_converted_photographs_pass_the_check(photographs, cli_invoke):
    data, records, classes = photographs
    checked = cli_invoke("data", "check", data, "--json")
    assert checked.exit_code == 0, checked.stdout
    assert (data / "labels.txt").read_text().split() == sorted(
        name for name in PHOTOGRAPHS if (Path(skimage.__file__).parent / "data" / PHOTOGRAPHS[name]).exists()
    )
    assert len((data / "labels.txt").read_text().split()) == classes
    source = json.loads((data / "dataset.json").read_text())
    assert sum(shard["records"] for shard in source["splits"]["train"]) == records


@pytest.mark.parametrize("factor", [1, 2, 3])
@pytest.mark.parametrize("point", POINTS)
def test_on_the_emulated_device_an_epoch_trains_every_record_factor_times(
    train, photographs, dividing_batch, point, factor
):
    counts = train("emulated", point, factor, dividing_batch)
    records = photographs[1]
    assert counts["fresh_examples"] == records
    assert counts["trained_examples"] == factor * records
    assert counts["repeated_examples"] == (factor - 1) * records
    assert counts["skipped_records"] == 0
    assert counts["steps"] == factor * records // dividing_batch


@pytest.mark.parametrize("point", POINTS)
def test_a_batch_that_does_not_divide_leaves_out_only_the_remainder(train, photographs, point):
    batch, records = 7, photographs[1]
    assert records % batch and 2 * records % batch
    counts = train("emulated", point, 2, batch)
    if point in ("after_batch", "after_transfer"):
        # The remainder is dropped before the echo.
        assert counts["fresh_examples"] == records // batch * batch
        assert counts["trained_examples"] == 2 * (records // batch * batch)
    else:
        # The remainder is dropped after it: some uses, of which each may be a fresh one.
        used = 2 * records // batch * batch
        assert counts["trained_examples"] == used
        assert records - (2 * records - used) <= counts["fresh_examples"] <= records


@pytest.mark.parametrize("factor", [1, 2, 3])
@pytest.mark.parametrize("point", POINTS)
def test_every_single_photograph_is_used_factor_times(photographs, dividing_batch, point, factor):
    data, records, _ = photographs
    config = PipelineConfig(
        str(data),
        batch_size=dividing_batch,
        image_size=32,
        epochs=1,
        echo_factor=factor,
        insert_point=point,
        shuffle_buffer_size=40,
        seed=7,
        keep_tags=True,
    )
    uses, fresh = collections.Counter(), collections.Counter()
    device = EmulatedAccelerator(None, batch_size=dividing_batch, step_seconds=0.0001)
    for step in device.steps(InputPipeline(config)()):
        # On the device a batch is used again as it is: then all its examples are repeats.
        repeat_indices = step.tags["repeat_index"] + step.device_repeat
        for record_id, repeat_index in zip(step.tags["record_id"], repeat_indices, strict=True):
            uses[int(record_id)] += 1
            fresh[int(record_id)] += repeat_index == 0
    assert len(uses) == records
    assert set(uses.values()) == {factor}
    assert set(fresh.values()) == {1}


def test_labels_are_those_of_the_folders_in_alphabetical_order(photographs):
    data, _, classes = photographs
    pipeline = InputPipeline(PipelineConfig(str(data), batch_size=1, image_size=32, epochs=1, seed=1))
    labels = collections.Counter(int(label[0]) for _, label in pipeline().as_numpy_iterator())
    assert labels == dict.fromkeys(range(1, classes + 1), TILES_PER_PHOTOGRAPH)


@pytest.mark.slow
@pytest.mark.parametrize(
    "point, factor", [(point, 2) for point in POINTS] + [("after_augment", 1), ("after_decode", 3)]
)
def test_real_training_uses_every_record_factor_times(train, photographs, dividing_batch, point, factor):
    counts = train("inception_v3", point, factor, dividing_batch)
    assert counts["fresh_examples"] == photographs[1]
    assert counts["trained_examples"] == factor * photographs[1]
    assert counts["steps"] == factor * photographs[1] // dividing_batch


@pytest.mark.slow
def test_real_training_leaves_out_only_the_remainder(train, photographs):
    counts = train("inception_v3", "after_read", 2, 7)
    assert counts["trained_examples"] == 2 * photographs[1] // 7 * 7
