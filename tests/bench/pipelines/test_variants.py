import importlib.util
import subprocess
import sys

import pytest

from bench.pipelines import variants as module
from bench.pipelines.variants import VARIANTS, Task, Variant, not_installed
from echoing.errors import OptionError

OWN = ["reference", "tuned", "ours_float32", "ours_uint8", "crop_decode"]


def test_own_variants_come_first_and_every_name_is_there():
    assert [variant.name for variant in VARIANTS] == [*OWN, "dali", "torchvision", "ffcv", "grain"]


def test_every_module_exists():
    assert all(importlib.util.find_spec(variant.module) for variant in VARIANTS)


def test_packages_and_distributions_go_in_pairs():
    assert all(len(variant.packages) == len(variant.distributions) for variant in VARIANTS)


def test_own_variants_need_nothing_more():
    assert all(variant.is_installed and not variant.packages for variant in VARIANTS[:5])


def test_variants_whose_packages_are_missing_are_not_installed(monkeypatch):
    missing = Variant("rare", "", "rare_module", "uint8", ("no_such_package_",), ("no-such", "and-this"))
    monkeypatch.setattr(module, "VARIANTS", (*VARIANTS[:2], missing))
    assert not_installed() == (missing,)
    assert missing.install_command == "pip install no-such and-this"


def test_missing_package_inside_a_missing_one_is_not_installed():
    assert not Variant("x", "", "m", "uint8", ("no_such_package_.inner",), ("x",)).is_installed


@pytest.mark.parametrize("name", ["batch_size", "image_size", "cores"])
def test_task_refuses_numbers_below_one(name):
    with pytest.raises(OptionError, match=name):
        Task("data", **{name: 0})


def test_nothing_heavy_is_imported():
    heavy = ("tensorflow", "numpy", "torch", "matplotlib")
    code = f"import sys, bench.pipelines.variants; print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
