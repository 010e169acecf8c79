"""The pipelines that `pipebench bench pipeline` compares. Imports nothing heavy."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass

from echoing.errors import OptionError

REFERENCE = "reference"
CROP_DECODE = "crop_decode"


@dataclass(frozen=True)
class Variant:
    """One pipeline.

    Attributes:
        name: as `--variants` takes it and `pipeline.csv` shows it.
        description: what it does, for the report.
        module: where its `open_batches(task)` is.
        output: type of the images that it delivers.
        package: import name of what must be installed beside pipebench; empty for nothing.
        distribution: its name on PyPI.
    """

    name: str
    description: str
    module: str
    output: str
    package: str = ""
    distribution: str = ""

    @property
    def is_installed(self) -> bool:
        """Whether what it needs is installed."""
        try:
            return not self.package or importlib.util.find_spec(self.package) is not None
        except ModuleNotFoundError:  # the package that should hold it
            return False


@dataclass(frozen=True)
class Task:
    """What every variant is given.

    Attributes:
        data_dir: folder of the shards.
        split: name prefix of the shards.
        batch_size: images a batch.
        image_size: height and width of the result, pixels.
        cores: processor cores to use, for libraries that do not choose by themselves.
    """

    data_dir: str
    split: str = "train"
    batch_size: int = 128
    image_size: int = 299
    cores: int = 1


VARIANTS = (
    Variant(
        REFERENCE,
        "the reference trainer's order of operations: whole decode, float, crop, resize, flip, colour",
        "bench.pipelines.tensorflow_reference",
        "float32",
    ),
    Variant(
        "tuned",
        "the usual hand-tuned form: size from the header, crop decode, float resize, flip, colour",
        "bench.pipelines.tensorflow_tuned",
        "float32",
    ),
    Variant("ours_float32", "pipebench, colour on the host", "bench.pipelines.ours_float32", "float32"),
    Variant("ours_uint8", "pipebench, colour on the device", "bench.pipelines.ours_uint8", "uint8"),
    Variant(
        CROP_DECODE,
        "decoding the crop and nothing else: the limit of every TensorFlow pipeline",
        "bench.pipelines.tensorflow_crop_decode",
        "none",
    ),
    Variant(
        "dali",
        "NVIDIA DALI on the CPU: crop decode, resize, flip",
        "bench.pipelines.dali",
        "uint8",
        "nvidia.dali",
        "nvidia-dali-cuda120",
    ),
    Variant(
        "torchvision",
        "PyTorch DataLoader: Pillow decode, RandomResizedCrop, flip, one process a core",
        "bench.pipelines.torchvision_loader",
        "uint8",
        "torchvision",
        "torchvision",
    ),
    Variant(
        "ffcv",
        "FFCV: its own file format with JPEG images, RandomResizedCrop, flip",
        "bench.pipelines.ffcv_loader",
        "uint8",
        "ffcv",
        "ffcv",
    ),
    Variant(
        "grain",
        "Grain with OpenCV: whole decode, crop, resize, flip, in threads",
        "bench.pipelines.grain_loader",
        "uint8",
        "grain",
        "grain",
    ),
)
"""All of them, in the order in which they are reported."""


def choose_variants(names: str) -> tuple[Variant, ...]:
    """Returns the variants of a comma-separated list, in the order of `VARIANTS`; empty for all installed.

    Raises:
        OptionError: an unknown name, or one whose package is not installed.
    """
    by_name = {variant.name: variant for variant in VARIANTS}
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        return tuple(variant for variant in VARIANTS if variant.is_installed)
    for name in wanted:
        if name not in by_name:
            raise OptionError("variants", name, f"names of {', '.join(by_name)}")
        variant = by_name[name]
        if not variant.is_installed:
            raise OptionError(
                "variants",
                name,
                "variants whose package is installed",
                f"Install it with `pip install {variant.distribution}`.",
            )
    return tuple(variant for variant in VARIANTS if variant.name in wanted)


def not_installed(variants: Sequence[Variant] = VARIANTS) -> tuple[Variant, ...]:
    """Returns those that need a package which is not installed."""
    return tuple(variant for variant in variants if not variant.is_installed)
