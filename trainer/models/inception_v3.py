"""Inception v3 (Szegedy et al. 2015, arXiv:1512.00567) with its auxiliary head, as in the reference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from trainer.models.batch_norm import BATCH_NORM_DECAY, BATCH_NORM_EPSILON, BatchNormOptions, Moments
from trainer.models.inception_v3_architecture import (
    AUXILIARY_MODULE,
    MAX,
    MEAN,
    MINIMUM_IMAGE_SIZE,
    MODULES,
    STEM,
    Fork,
    Node,
    Pool,
    grid_after,
)
from trainer.models.layers import Classifier, Convolution
from trainer.models.model import Outputs
from trainer.models.network import Network

DROPOUT_KEEP_RATE = 0.8
"""Share of the features kept before the logits; the reference network's dropout_keep_prob."""
AUXILIARY_STDDEV, AUXILIARY_LOGITS_STDDEV = 0.01, 0.001
"""Standard deviations of the initial weights in the auxiliary head, as in the reference network."""


class InceptionV3(Network):
    """The network: 94 convolutions and 2 in the auxiliary head, each with batch normalisation; 2 classifiers.

    Batch normalisation has no scale. Where an image is not of 299 x 299 pixels, the last pooling takes the
    mean of whatever grid is left; the auxiliary head's pooling and 5 x 5 convolution shrink with a smaller
    grid, and a mean follows on a larger.

    Args:
        image_size: height and width of the images, pixels, >= 75.
        width_multiplier: factor on the channels of each layer, > 0; none gets fewer than 16 channels.
        num_classes: number of logits, the background included; labels are 0 to `num_classes - 1`.
        compute_dtype: `float32` or `bfloat16`; variables and logits are float32 in any case.
        seed: seed of the initial weights and of dropout, >= 0.
        batch_norm_decay: of the moving averages, 0 to 1.
        batch_norm_epsilon: added to the variance, > 0.

    Raises:
        OptionError: a value is not allowed.
    """

    def __init__(
        self,
        image_size: int = 299,
        width_multiplier: float = 1.0,
        num_classes: int = 1001,
        compute_dtype: str = "float32",
        seed: int = 0,
        batch_norm_decay: float = BATCH_NORM_DECAY,
        batch_norm_epsilon: float = BATCH_NORM_EPSILON,
    ) -> None:
        super().__init__(
            "InceptionV3",
            image_size,
            MINIMUM_IMAGE_SIZE,
            width_multiplier,
            num_classes,
            compute_dtype,
            seed,
            BatchNormOptions(batch_norm_decay, batch_norm_epsilon),
        )
        self.stem, channels = self._chain(STEM, 3, "Conv2d")
        grid = grid_after(STEM, image_size)
        self.mixed: dict[str, Any] = {}
        for name, branches in MODULES.items():
            built = [
                self._chain(branch, channels, f"{name}/Branch_{number}")
                for number, branch in enumerate(branches)
            ]
            self.mixed[name] = [layers for layers, _ in built]
            channels = sum(depth for _, depth in built)
            grid = grid_after(branches[0], grid)
            if name == AUXILIARY_MODULE:
                self._build_auxiliary(channels, grid)
        self.classifier = Classifier(channels, num_classes, "Logits", seed, keep_rate=DROPOUT_KEEP_RATE)

    def _build_auxiliary(self, channels: int, grid: int) -> None:
        self._auxiliary_pool = min(5, grid)
        kernel = min(5, (grid - self._auxiliary_pool) // 3 + 1)
        self.auxiliary = [
            Convolution(
                channels,
                self._depth(128),
                (1, 1),
                "AuxLogits/Conv2d_1b",
                self._seed,
                batch_norm=self._batch_norm,
            ),
            Convolution(
                self._depth(128),
                self._depth(768),
                (kernel, kernel),
                "AuxLogits/Conv2d_2a",
                self._seed,
                padding="VALID",
                stddev=AUXILIARY_STDDEV,
                batch_norm=self._batch_norm,
            ),
        ]
        self.auxiliary_classifier = Classifier(
            self._depth(768), self._num_classes, "AuxLogits", self._seed, stddev=AUXILIARY_LOGITS_STDDEV
        )

    def _chain(self, nodes: Sequence[Node], channels: int, name: str) -> tuple[list[Any], int]:
        """Builds consecutive nodes; returns them and the channels of the last one's output."""
        layers: list[Any] = []
        for number, node in enumerate(nodes):
            if isinstance(node, Pool):
                layers.append(node)
                continue
            ways = node.ways if isinstance(node, Fork) else (node,)
            built = [
                Convolution(
                    channels,
                    self._depth(way.depth),
                    (way.height, way.width),
                    f"{name}/{number}{'ab'[place]}_{way.height}x{way.width}",
                    self._seed,
                    way.strides,
                    way.padding,
                    batch_norm=self._batch_norm,
                )
                for place, way in enumerate(ways)
            ]
            layers.append(built)
            channels = sum(self._depth(way.depth) for way in ways)
        return layers, channels

    def __call__(self, images: Any, training: bool, step: Any = 0, replica: Any = 0) -> Outputs:
        """Runs the network; see `trainer.models.model.Model`."""
        moments: list[Moments] | None = [] if training else None
        features = _run(self.stem, self._features(images), moments)
        auxiliary = None
        for name, branches in self.mixed.items():
            features = tf.concat([_run(branch, features, moments) for branch in branches], axis=-1)
            if training and name == AUXILIARY_MODULE:
                pooled = tf.nn.avg_pool2d(features, self._auxiliary_pool, 3, "VALID")
                hidden = self.auxiliary[1](self.auxiliary[0](pooled, moments), moments)
                auxiliary = self.auxiliary_classifier(hidden, training, step, replica)
        main = self.classifier(features, training, step, replica)
        return Outputs(main, auxiliary, tuple(moments or ()))


def _run(layers: Sequence[Any], features: Any, moments: list[Moments] | None) -> Any:
    for layer in layers:
        if layer == MAX:
            features = tf.nn.max_pool2d(features, 3, 2, "VALID")
        elif layer == MEAN:
            features = tf.nn.avg_pool2d(features, 3, 1, "SAME")
        else:
            ways = [convolution(features, moments) for convolution in layer]
            features = ways[0] if len(ways) == 1 else tf.concat(ways, axis=-1)
    return features
