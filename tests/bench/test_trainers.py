from types import SimpleNamespace

import pytest
import tensorflow as tf

from bench.run_options import RunOptions
from bench.trainers import complete_options, make_trainer
from echoing.errors import OptionError
from pipeline.config import PipelineConfig

SOURCE = SimpleNamespace(num_classes=5)


def options(pipeline=None, **changes):
    values = {"batch_size": 4, "image_size": 75, "seed": 1} | (pipeline or {})
    return RunOptions(PipelineConfig("some-data", **values), **changes)


@pytest.fixture
def visible(monkeypatch):
    """Makes devices of one kind visible, or none."""

    def see(kind):
        monkeypatch.setattr(
            tf.config, "list_physical_devices", lambda wanted=None: ["a device"] if wanted == kind else []
        )

    return see


@pytest.mark.parametrize("kind, trainer", [("GPU", "inception_v3"), ("TPU", "emulated"), (None, "emulated")])
def test_auto_trains_for_real_where_a_gpu_is_visible(visible, kind, trainer):
    visible(kind)
    assert complete_options(options(trainer="auto"), batch_size_given=True).trainer == trainer


def test_a_trainer_that_was_asked_for_is_kept(visible):
    visible("GPU")
    assert complete_options(options(trainer="emulated"), True).trainer == "emulated"
    visible(None)
    assert complete_options(options(trainer="inception_v3"), True).trainer == "inception_v3"


def test_the_batch_size_is_the_trainers_unless_given():
    assert complete_options(options(trainer="emulated"), False).pipeline.batch_size == 128
    assert complete_options(options(trainer="inception_v3"), False).pipeline.batch_size == 32
    assert complete_options(options(trainer="emulated"), True).pipeline.batch_size == 4
    assert complete_options(options(trainer="inception_v3"), True).pipeline.batch_size == 4


def test_a_seed_is_drawn_only_where_none_was_given():
    assert complete_options(options({"seed": 0}), True).pipeline.seed == 0
    drawn = [complete_options(options({"seed": None}), True).pipeline.seed for _ in range(3)]
    assert all(0 <= seed < 2**31 for seed in drawn)
    assert len(set(drawn)) > 1


def test_the_emulated_accelerator_takes_preset_step_time_and_batch():
    device = make_trainer(options(trainer="emulated", accelerator="v100"), SOURCE).device
    assert (device.name, device.kind, device.model) == ("v100", "emulated", "ResNet-50")
    assert device.step_seconds == pytest.approx(0.195 * 4 / 64)
    device = make_trainer(options(trainer="emulated", step_seconds=0.5), SOURCE).device
    assert device.step_seconds == 0.5


def test_a_step_time_makes_no_sense_for_real_training():
    with pytest.raises(OptionError, match=r"step_time_seconds is 0.5.*left out with real training"):
        make_trainer(options(trainer="inception_v3", step_seconds=0.5), SOURCE)


@pytest.mark.parametrize("given, in_data, outputs", [(7, 5, 7), (None, 5, 5), (None, None, 1001)])
def test_the_outputs_are_those_given_or_the_datas_or_imagenets(monkeypatch, given, in_data, outputs):
    seen = []
    monkeypatch.setattr("trainer.inception_trainer.InceptionTrainer", seen.append)
    make_trainer(
        options(trainer="inception_v3", num_classes=given, width_multiplier=0.5, steps_per_loop=3),
        SimpleNamespace(num_classes=in_data),
    )
    (made,) = seen
    assert made.num_classes == outputs
    assert (made.batch_size, made.image_size, made.seed) == (4, 75, 1)
    assert (made.width_multiplier, made.steps_per_loop, made.optimizer) == (0.5, 3, "rmsprop")


@pytest.mark.parametrize("pipeline", [{"image_size": 74}, {"image_size": 1}])
def test_images_too_small_for_the_network_are_refused(pipeline):
    with pytest.raises(OptionError, match=r"image_size.*75"):
        make_trainer(options(pipeline, trainer="inception_v3"), SOURCE)


@pytest.mark.parametrize(
    "pipeline, changes, expected",
    [
        ({"echo_factor": 2, "insert_point": "after_batch"}, {}, None),
        ({"echo_factor": 1, "insert_point": "after_transfer"}, {}, None),
        ({"echo_factor": 2, "insert_point": "after_transfer"}, {}, (False, None)),
        (
            {"echo_factor": 2, "insert_point": "after_transfer"},
            {"reaugment_on_device": True},
            (True, None),
        ),
        (
            {"echo_factor": "elastic", "max_echo_factor": 3.0, "insert_point": "after_transfer"},
            {},
            (False, 3),
        ),
        ({"echo_factor": "elastic", "insert_point": "after_augment"}, {}, None),
    ],
)
def test_the_device_repeats_batches_only_after_the_transfer(monkeypatch, pipeline, changes, expected):
    seen = []
    monkeypatch.setattr(
        "trainer.emulation.accelerator.EmulatedAccelerator",
        lambda *args, device_echo, **rest: seen.append(device_echo),
    )
    make_trainer(options({"keep_tags": True, **pipeline}, trainer="emulated", **changes), SOURCE)
    (echo,) = seen
    assert (echo and (echo.reaugment, echo.opportunistic_max_uses)) == expected


def test_real_training_refuses_an_elastic_echo_on_the_device():
    pipeline = {"keep_tags": True, "echo_factor": "elastic", "insert_point": "after_transfer"}
    with pytest.raises(OptionError, match=r"echo_factor is 'elastic'.*earlier point"):
        make_trainer(options(pipeline, trainer="inception_v3"), SOURCE)


def test_a_device_that_repeats_batches_takes_whole_factors_alone():
    pipeline = {
        "keep_tags": True, "echo_factor": "elastic", "max_echo_factor": 3.7, "insert_point": "after_transfer",
    }  # fmt: skip
    with pytest.raises(OptionError, match=r"max_echo_factor is 3.7.*whole number"):
        make_trainer(options(pipeline, trainer="emulated"), SOURCE)


@pytest.mark.parametrize("factor, steps", [(2, 100), ("elastic", 4)])
def test_an_elastic_factor_is_followed_in_short_loops(monkeypatch, factor, steps):
    seen = []
    monkeypatch.setattr("trainer.inception_trainer.InceptionTrainer", seen.append)
    make_trainer(options({"echo_factor": factor}, trainer="inception_v3", precision="bfloat16"), SOURCE)
    (made,) = seen
    assert made.steps_per_loop == steps
    assert made.compute_dtype == "bfloat16"
