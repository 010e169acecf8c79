import dataclasses
import io
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from pipeline.datasets.scene import SceneSpec, example_class, render_example

SPEC = SceneSpec(seed=0, split="train", classes=10, height=375, width=500, fixed_size=False, quality=93)
SMALL = dataclasses.replace(SPEC, height=48, width=64, fixed_size=True)


def test_rendering_imports_neither_tensorflow_nor_anything_else_heavy() -> None:
    code = (
        "import sys, pipeline.datasets.scene; "
        "print([name for name in ('tensorflow', 'keras', 'matplotlib', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_example_is_an_rgb_jpeg_of_the_size_that_it_states() -> None:
    example = render_example(SPEC, 3)
    image = Image.open(io.BytesIO(example.encoded))
    image.load()
    assert (image.format, image.mode, image.size) == ("JPEG", "RGB", (example.width, example.height))


def test_mean_record_size_is_that_of_imagenet() -> None:
    sizes = [len(render_example(SPEC, index).encoded) for index in range(64)]
    assert 90_000 < np.mean(sizes) < 130_000
    assert np.std(sizes) > 10_000  # photographs differ, too


def test_sizes_vary_around_the_asked_one_in_both_orientations() -> None:
    spec = dataclasses.replace(SPEC, height=75, width=100)
    sizes = [(example.height, example.width) for example in (render_example(spec, i) for i in range(300))]
    assert np.mean([height * width for height, width in sizes]) == pytest.approx(7500, rel=0.1)
    upright = np.mean([height > width for height, width in sizes])
    assert 0.15 < upright < 0.35
    assert len(set(sizes)) > 100


def test_fixed_size_gives_every_image_exactly_this_size() -> None:
    assert {(e.height, e.width) for e in (render_example(SMALL, i) for i in range(20))} == {(48, 64)}


def test_an_example_does_not_depend_on_what_was_rendered_before() -> None:
    alone = render_example(SMALL, 7)
    for index in (9, 2, 5):
        render_example(SMALL, index)
    assert render_example(SMALL, 7) == alone


def test_no_two_images_are_the_same_across_indices_splits_and_seeds() -> None:
    specs = [
        SMALL,
        dataclasses.replace(SMALL, split="validation"),
        dataclasses.replace(SMALL, seed=1),
    ]
    images = [render_example(spec, index).encoded for spec in specs for index in range(40)]
    assert len(set(images)) == 120


@pytest.mark.parametrize("classes", [1, 3, 10])
def test_every_block_holds_each_class_once_and_blocks_are_ordered_differently(classes: int) -> None:
    spec = dataclasses.replace(SMALL, classes=classes)
    order = [example_class(spec, index) for index in range(classes * 20)]
    assert Counter(order) == dict.fromkeys(range(classes), 20)
    blocks = {tuple(order[start : start + classes]) for start in range(0, classes * 20, classes)}
    assert all(sorted(block) == list(range(classes)) for block in blocks)
    if classes > 1:
        assert len(blocks) > 1


@settings(max_examples=60, deadline=None)
@given(
    index=st.integers(0, 10**9),
    classes=st.integers(1, 1080),
    height=st.integers(16, 80),
    width=st.integers(16, 80),
    fixed=st.booleans(),
)
def test_boxes_lie_inside_with_area_and_are_as_many_as_the_class_says(
    index: int, classes: int, height: int, width: int, fixed: bool
) -> None:
    spec = SceneSpec(5, "train", classes, height, width, fixed, 90)
    example = render_example(spec, index)
    assert 0 <= example.class_index < classes
    assert len(example.boxes) == example.class_index // 40 % 3 + 1
    for ymin, xmin, ymax, xmax in example.boxes:
        assert 0 <= ymin < ymax <= 1
        assert 0 <= xmin < xmax <= 1


def test_a_box_encloses_the_object_tightly() -> None:
    # Class 0 is one plain disc: its box is as wide as it is high, and pixels inside differ little.
    spec = dataclasses.replace(SMALL, classes=1, height=200, width=300)
    for index in range(5):
        example = render_example(spec, index)
        pixels = np.asarray(Image.open(io.BytesIO(example.encoded)).convert("L"), np.float32)
        ((ymin, xmin, ymax, xmax),) = example.boxes
        rows, columns = (ymax - ymin) * 200, (xmax - xmin) * 300
        assert rows == pytest.approx(columns, abs=1.5)
        middle = round((ymin + ymax) * 100), round((xmin + xmax) * 150)
        quarter = round(rows / 4)
        inside = pixels[middle[0] - quarter : middle[0] + quarter, middle[1] - quarter : middle[1] + quarter]
        assert inside.std() < pixels.std() * 0.6


def test_the_mean_colour_of_an_image_tells_little_about_its_class() -> None:
    spec = dataclasses.replace(SMALL, classes=4)
    colours, labels = [], []
    for index in range(400):
        example = render_example(spec, index)
        pixels = np.asarray(Image.open(io.BytesIO(example.encoded)), np.float32)
        colours.append(pixels.mean(axis=(0, 1)))
        labels.append(example.class_index)
    features, truth = np.array(colours), np.array(labels)
    centres = np.stack([features[:200][truth[:200] == label].mean(axis=0) for label in range(4)])
    guesses = np.argmin(((features[200:, None] - centres) ** 2).sum(axis=2), axis=1)
    assert (guesses == truth[200:]).mean() < 0.40  # chance is 0.25
