from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from echoing.errors import OptionError
from trainer.device_echo import DeviceEcho
from trainer.optimizers import OPTIMIZERS
from trainer.train_options import OPTIMIZER_NAMES, TrainOptions


def options(**changes: Any) -> TrainOptions:
    return TrainOptions(**{"batch_size": 1024, "train_steps": 213_000} | changes)


def test_defaults_are_the_reference_trainers() -> None:
    found = options()
    expected = {
        "model": "inception_v3",
        "image_size": 299,
        "num_classes": 1001,
        "compute_dtype": "float32",
        "steps_per_loop": 100,
        "optimizer": "rmsprop",
        "learning_rate": 0.165,
        "learning_rate_decay": 0.94,
        "learning_rate_decay_epochs": 3,
        "use_learning_rate_warmup": False,
        "cold_epochs": 2,
        "warmup_epochs": 7,
        "examples_per_epoch": 1281167,
        "label_smoothing": 0.1,
        "auxiliary_weight": 0.4,
        "weight_decay": 4e-5,
        "batch_norm_decay": 0.996,
        "batch_norm_epsilon": 1e-3,
        "moving_average": True,
        "moving_average_decay": 0.995,
        "layout": "nhwc",
    }
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("batch_size", 0),
        ("eval_batch_size", 0),
        ("train_steps", 0),
        ("model", "vgg"),
        ("image_size", 74),
        ("width_multiplier", 0.0),
        ("num_classes", 1),
        ("compute_dtype", "float16"),
        ("steps_per_loop", 0),
        ("jit_compile", 1),
        ("optimizer", "adam"),
        ("learning_rate", 0.0),
        ("learning_rate_decay", 1.5),
        ("learning_rate_decay_epochs", 0),
        ("use_learning_rate_warmup", None),
        ("cold_epochs", -1),
        ("warmup_epochs", -1),
        ("examples_per_epoch", 0),
        ("label_smoothing", 1.5),
        ("auxiliary_weight", -0.1),
        ("weight_decay", float("nan")),
        ("batch_norm_decay", 1.1),
        ("batch_norm_epsilon", 0.0),
        ("moving_average", "yes"),
        ("moving_average_decay", 2),
        ("layout", "nchw"),
        ("seed", -1),
        ("deterministic", 0),
    ],
)
def test_option_that_is_not_allowed_is_refused_by_name(option: str, value: Any) -> None:
    with pytest.raises(OptionError, match=rf"^{option} is "):
        options(**{option: value})


def test_smallest_image_depends_on_the_model() -> None:
    assert options(model="resnet18", image_size=32).image_size == 32
    with pytest.raises(OptionError, match="image_size is 32"):
        options(image_size=32)


def test_run_that_ends_inside_its_warm_up_is_refused() -> None:
    with pytest.raises(OptionError, match="train_steps is 10"):
        options(train_steps=10, use_learning_rate_warmup=True)


def test_rate_of_the_schedule_is_scaled_to_the_batch() -> None:
    assert options().schedule.at(0) == pytest.approx(0.66)
    assert options(batch_size=512, learning_rate=0.1).schedule.at(0) == pytest.approx(0.2)


def test_elastic_echo_on_the_device_is_refused_and_says_what_works() -> None:
    with pytest.raises(OptionError, match=r"opportunistic_max_uses is 4.*fixed factor at after_transfer"):
        options(device_echo=DeviceEcho(opportunistic_max_uses=4))


def test_names_of_the_optimizers_are_all_there_are() -> None:
    assert OPTIMIZER_NAMES == OPTIMIZERS


def test_options_and_strategies_are_checked_without_tensorflow() -> None:
    program = "import sys, trainer.train_options, trainer.strategies; assert 'tensorflow' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
