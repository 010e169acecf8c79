"""The networks by name. TensorFlow is imported when the first is made, and not to check an option."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from echoing.checks import check_choice
from trainer.models import inception_v3_architecture, resnet_architecture

if TYPE_CHECKING:
    from trainer.models.model import Model

_MINIMUM_IMAGE_SIZES = {
    "inception_v3": inception_v3_architecture.MINIMUM_IMAGE_SIZE,
    "resnet50": resnet_architecture.MINIMUM_IMAGE_SIZE,
    "resnet18": resnet_architecture.MINIMUM_IMAGE_SIZE,
}
MODEL_NAMES = tuple(_MINIMUM_IMAGE_SIZES)
"""The networks; the first is the reference trainer's."""


def minimum_image_size(name: str) -> int:
    """Returns the least height and width of the images of a network, pixels.

    Raises:
        OptionError: there is no network of that name.
    """
    return _MINIMUM_IMAGE_SIZES[check_choice("model", name, MODEL_NAMES)]


def make_model(name: str, **keywords: Any) -> Model:
    """Returns a new network, its variables made in the `strategy.scope()` that is active.

    Args:
        name: one of `MODEL_NAMES`.
        **keywords: `image_size`, `width_multiplier`, `num_classes`, `compute_dtype`, `seed`,
            `batch_norm_decay` and `batch_norm_epsilon`, as of `InceptionV3` and `ResNet`.

    Raises:
        OptionError: there is no network of that name, or a value is not allowed.
    """
    check_choice("model", name, MODEL_NAMES)
    if name == "inception_v3":
        from trainer.models.inception_v3 import InceptionV3

        return InceptionV3(**keywords)
    from trainer.models.resnet import ResNet

    architectures = {"resnet50": resnet_architecture.RESNET50, "resnet18": resnet_architecture.RESNET18}
    return ResNet(architectures[name], **keywords)
