"""Which preprocessing a configuration asks for."""

from __future__ import annotations

from typing import Any, Protocol

from pipeline.config import PipelineConfig
from pipeline.preprocessing.inception import Inception
from pipeline.preprocessing.vgg import Vgg


class Preprocessing(Protocol):
    """From a decoded image of any size to the one that the model takes."""

    @property
    def image_size(self) -> int:
        """Height and width of the results, pixels."""
        ...

    def for_training(self, image: Any, boxes: Any | None, words: Any) -> Any:
        """Returns float32 [size, size, 3] of uint8 [height, width, 3], drawn by uint64 [words]."""
        ...

    def for_evaluation(self, image: Any) -> Any:
        """Returns float32 [size, size, 3] of uint8 [height, width, 3]."""
        ...


def select_preprocessing(config: PipelineConfig) -> Inception | Vgg:
    """Returns the preprocessing of the configuration; `fused` has the options of `inception`."""
    if config.preprocess == "vgg":
        return Vgg(config.image_size, config.vgg_reference_scaling, config.half_pixel_centers)
    return Inception(
        image_size=config.image_size,
        cb_distortion_range=config.cb_distortion_range,
        cr_distortion_range=config.cr_distortion_range,
        use_fast_color_distort=config.use_fast_color_distort,
        fast_mode=config.fast_mode,
        half_pixel_centers=config.half_pixel_centers,
    )
