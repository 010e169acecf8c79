"""The pipelines that `pipebench bench pipeline` compares. Imports nothing heavy."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from echoing.checks import check_integer

REFERENCE = "reference"
CROP_DECODE = "crop_decode"


@dataclass(frozen=True)
class Variant:
    """One pipeline.

    Attributes:
        name: as `--variants` takes it and `pipeline.csv` shows it.
        description: what it does, for the report.
        module: where its `open_batches(task)` is.
        output: type of the images that it delivers; `none` where it delivers no images.
        packages: import names of what must be installed beside pipebench.
        distributions: their names on PyPI, in the same order.
        settings: options of our own pipeline in place of its defaults; see `bench.pipelines.selection`.
    """

    name: str
    description: str
    module: str
    output: str
    packages: tuple[str, ...] = ()
    distributions: tuple[str, ...] = ()
    settings: tuple[tuple[str, Any], ...] = ()

    @property
    def is_installed(self) -> bool:
        """Whether what it needs is installed; nothing is imported but the packages around them."""
        return all(map(_is_found, self.packages))

    @property
    def install_command(self) -> str:
        """The shell line that installs what it needs."""
        return f"pip install {' '.join(self.distributions)}"


@dataclass(frozen=True)
class Task:
    """What every variant is given.

    Attributes:
        data_dir: folder of the shards.
        split: name prefix of the shards.
        batch_size: images a batch.
        image_size: height and width of the result, pixels.
        cores: processor cores to use, for libraries that do not choose by themselves.
        settings: those of the variant.

    Raises:
        OptionError: a number below 1.
    """

    data_dir: str
    split: str = "train"
    batch_size: int = 128
    image_size: int = 299
    cores: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("batch_size", "image_size", "cores"):
            check_integer(name, getattr(self, name), 1)


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
        "TensorFlow's decoder, with its default options, on the crop and nothing else",
        "bench.pipelines.tensorflow_crop_decode",
        "none",
    ),
    Variant(
        "dali",
        "NVIDIA DALI on the CPU: crop decode, resize, flip",
        "bench.pipelines.dali",
        "uint8",
        ("nvidia.dali",),
        ("nvidia-dali-cuda120",),
    ),
    Variant(
        "torchvision",
        "PyTorch DataLoader: torchvision's decode, RandomResizedCrop, flip, one process a core",
        "bench.pipelines.torchvision_loader",
        "uint8",
        ("torch", "torchvision"),
        ("torch", "torchvision"),
    ),
    Variant(
        "ffcv",
        "FFCV: its own file format with JPEG images, RandomResizedCrop, flip",
        "bench.pipelines.ffcv_loader",
        "uint8",
        ("ffcv",),
        ("ffcv",),
    ),
    Variant(
        "grain",
        "Grain with OpenCV: whole decode, crop, resize, flip, in threads",
        "bench.pipelines.grain_loader",
        "uint8",
        ("grain", "cv2"),
        ("grain", "opencv-python-headless"),
    ),
)
"""All of them, in the order in which they are reported."""


def not_installed() -> tuple[Variant, ...]:
    """Returns the variants that need a package which is not installed."""
    return tuple(variant for variant in VARIANTS if not variant.is_installed)


def _is_found(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # the package that should hold it
        return False
