"""ResNet v1.5: residual networks (He et al. 2015, arXiv:1512.03385) that halve the grid in a 3 x 3 layer.

Version 1.5 moves the stride of a bottleneck from its first 1 x 1 convolution, which would skip three quarters
of the pixels, to its 3 x 3 convolution, as the ResNet-50 of torchvision and of the MLPerf rules do. The last
scale of every block starts at zero, so that blocks start as identities (Goyal et al. 2017, arXiv:1706.02677,
section 5.1).
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from trainer.models.batch_norm import BATCH_NORM_DECAY, BATCH_NORM_EPSILON, BatchNormOptions, Moments
from trainer.models.layers import Classifier, Convolution
from trainer.models.model import Outputs
from trainer.models.network import Network
from trainer.models.resnet_architecture import (
    BOTTLENECK_EXPANSION,
    MINIMUM_IMAGE_SIZE,
    RESNET50,
    STAGE_DEPTHS,
    ResNetArchitecture,
)

LOGITS_STDDEV = 0.01
"""Standard deviation of the classifier's initial weights; Goyal et al. 2017, section 5.1."""


class Block(tf.Module):
    """Convolutions around which the input goes unchanged, or through a projection where its shape changes.

    Args:
        layers: the convolutions in order, the last without ReLU.
        shortcut: the projection, a 1 x 1 convolution without ReLU, or None.
    """

    def __init__(self, layers: list[Convolution], shortcut: Convolution | None) -> None:
        super().__init__(name="Block")
        self.layers, self.shortcut = layers, shortcut

    def __call__(self, inputs: Any, moments: list[Moments] | None) -> Any:
        """Maps a feature map to one of the same dtype; `moments` as in `BatchNorm`."""
        features = inputs
        for layer in self.layers:
            features = layer(features, moments)
        return tf.nn.relu(features + (inputs if self.shortcut is None else self.shortcut(inputs, moments)))


class ResNet(Network):
    """A residual network without auxiliary head and without dropout; batch normalisation has a scale.

    Padding is the same on all sides, whatever the image's size. The defaults of batch normalisation are
    those of the reference's Inception v3; most texts on ResNet have a decay of 0.9 and an epsilon of 1e-5.

    Args:
        architecture: `RESNET18`, `RESNET50` or another of the family.
        image_size: height and width of the images, pixels, >= 17.
        width_multiplier: factor on the channels of each layer, > 0; none gets fewer than 16 channels.
        num_classes: number of logits, the background included; labels are 0 to `num_classes - 1`.
        compute_dtype: `float32` or `bfloat16`; variables and logits are float32 in any case.
        seed: seed of the initial weights, >= 0.
        batch_norm_decay: of the moving averages, 0 to 1.
        batch_norm_epsilon: added to the variance, > 0.

    Raises:
        OptionError: a value is not allowed.
    """

    def __init__(
        self,
        architecture: ResNetArchitecture = RESNET50,
        image_size: int = 224,
        width_multiplier: float = 1.0,
        num_classes: int = 1001,
        compute_dtype: str = "float32",
        seed: int = 0,
        batch_norm_decay: float = BATCH_NORM_DECAY,
        batch_norm_epsilon: float = BATCH_NORM_EPSILON,
    ) -> None:
        super().__init__(
            architecture.name,
            image_size,
            MINIMUM_IMAGE_SIZE,
            width_multiplier,
            num_classes,
            compute_dtype,
            seed,
            BatchNormOptions(batch_norm_decay, batch_norm_epsilon),
        )
        channels = self._depth(STAGE_DEPTHS[0])
        self.stem = self._convolution(3, channels, 7, "Conv1", strides=2)
        self.blocks: list[Block] = []
        for stage, (depth, count) in enumerate(zip(STAGE_DEPTHS, architecture.blocks, strict=True)):
            for number in range(count):
                strides = 2 if number == 0 and stage > 0 else 1
                name = f"Stage{stage + 1}/Block{number + 1}"
                block, channels = self._block(
                    architecture.bottleneck, channels, self._depth(depth), strides, name
                )
                self.blocks.append(block)
        self.classifier = Classifier(channels, num_classes, "Logits", seed, stddev=LOGITS_STDDEV)

    def _block(
        self, bottleneck: bool, channels: int, depth: int, strides: int, name: str
    ) -> tuple[Block, int]:
        """Builds a block; returns it and the channels of its output."""
        out = depth * BOTTLENECK_EXPANSION if bottleneck else depth
        if bottleneck:
            layers = [
                self._convolution(channels, depth, 1, f"{name}/Conv1"),
                self._convolution(depth, depth, 3, f"{name}/Conv2", strides),
                self._convolution(depth, out, 1, f"{name}/Conv3", initial_scale=0.0, relu=False),
            ]
        else:
            layers = [
                self._convolution(channels, depth, 3, f"{name}/Conv1", strides),
                self._convolution(depth, out, 3, f"{name}/Conv2", initial_scale=0.0, relu=False),
            ]
        shortcut = None
        if strides != 1 or channels != out:
            shortcut = self._convolution(channels, out, 1, f"{name}/Shortcut", strides, relu=False)
        return Block(layers, shortcut), out

    def _convolution(
        self,
        in_channels: int,
        out_channels: int,
        size: int,
        name: str,
        strides: int = 1,
        initial_scale: float = 1.0,
        relu: bool = True,
    ) -> Convolution:
        """Builds one of `size` x `size` pixels that keeps the grid, or divides it by its strides."""
        return Convolution(
            in_channels,
            out_channels,
            (size, size),
            name,
            self._seed,
            strides,
            padding=size // 2 or "VALID",
            batch_norm=self._batch_norm,
            initial_scale=initial_scale,
            relu=relu,
        )

    def __call__(self, images: Any, training: bool, step: Any = 0, replica: Any = 0) -> Outputs:
        """Runs the network; see `trainer.models.model.Model`. Step and replica are not used."""
        moments: list[Moments] | None = [] if training else None
        features = self.stem(self._features(images), moments)
        # Zeros are as good as minus infinity around values that come out of a ReLU.
        features = tf.pad(features, [[0, 0], [1, 1], [1, 1], [0, 0]])
        features = tf.nn.max_pool2d(features, 3, 2, "VALID")
        for block in self.blocks:
            features = block(features, moments)
        return Outputs(self.classifier(features, training), None, tuple(moments or ()))
