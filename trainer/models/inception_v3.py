"""Inception v3 (Szegedy et al. 2015, arXiv:1512.00567) with its auxiliary head, as in the reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import tensorflow as tf

from echoing.checks import check_choice, check_integer, check_number
from trainer.models.layers import Classifier, Convolution

MINIMUM_IMAGE_SIZE = 75
"""Smaller images leave nothing for the last reduction (Mixed_7a) to work on, pixels."""
MINIMUM_DEPTH = 16
"""The width multiplier makes no layer narrower than this, channels; tf_slim's min_depth."""
DROPOUT_KEEP_RATE = 0.8
"""Share of the features kept before the logits; the reference network's dropout_keep_prob."""
AUXILIARY_STDDEV, AUXILIARY_LOGITS_STDDEV = 0.01, 0.001
"""Standard deviations of the initial weights in the auxiliary head, as in the reference network."""


class Conv(NamedTuple):
    """A convolution of the architecture; `depth` is at width multiplier 1."""

    depth: int
    height: int = 1
    width: int = 1
    strides: int = 1
    padding: str = "SAME"


@dataclass(frozen=True)
class Pool:
    """A pooling over 3 x 3 pixels: the maximum with stride 2, or the mean with stride 1."""

    kind: str


class Fork(NamedTuple):
    """Convolutions that read the same input and whose outputs are concatenated."""

    ways: tuple[Conv, ...]


Node = Conv | Pool | Fork
MEAN, MAX = Pool("mean"), Pool("max")


def _mixed_35(pooled: int) -> list[list[Node]]:
    """Modules on the 35 x 35 grid (sizes of grids are those of a 299 x 299 image)."""
    return [
        [Conv(64)],
        [Conv(48), Conv(64, 5, 5)],
        [Conv(64), Conv(96, 3, 3), Conv(96, 3, 3)],
        [MEAN, Conv(pooled)],
    ]


def _mixed_17(depth: int) -> list[list[Node]]:
    """Modules on the 17 x 17 grid, with 7 x 7 convolutions factored into 1 x 7 and 7 x 1."""
    return [
        [Conv(192)],
        [Conv(depth), Conv(depth, 1, 7), Conv(192, 7, 1)],
        [Conv(depth), Conv(depth, 7, 1), Conv(depth, 1, 7), Conv(depth, 7, 1), Conv(192, 1, 7)],
        [MEAN, Conv(192)],
    ]


def _mixed_8() -> list[list[Node]]:
    """Modules on the 8 x 8 grid."""
    fork = Fork((Conv(384, 1, 3), Conv(384, 3, 1)))
    return [[Conv(320)], [Conv(384), fork], [Conv(448), Conv(384, 3, 3), fork], [MEAN, Conv(192)]]


STEM: list[Node] = [
    Conv(32, 3, 3, 2, "VALID"),
    Conv(32, 3, 3, 1, "VALID"),
    Conv(64, 3, 3),
    MAX,
    Conv(80, 1, 1, 1, "VALID"),
    Conv(192, 3, 3, 1, "VALID"),
    MAX,
]
MODULES: dict[str, list[list[Node]]] = {
    "Mixed_5b": _mixed_35(32),
    "Mixed_5c": _mixed_35(64),
    "Mixed_5d": _mixed_35(64),
    "Mixed_6a": [
        [Conv(384, 3, 3, 2, "VALID")],
        [Conv(64), Conv(96, 3, 3), Conv(96, 3, 3, 2, "VALID")],
        [MAX],
    ],
    "Mixed_6b": _mixed_17(128),
    "Mixed_6c": _mixed_17(160),
    "Mixed_6d": _mixed_17(160),
    "Mixed_6e": _mixed_17(192),
    "Mixed_7a": [
        [Conv(192), Conv(320, 3, 3, 2, "VALID")],
        [Conv(192), Conv(192, 1, 7), Conv(192, 7, 1), Conv(192, 3, 3, 2, "VALID")],
        [MAX],
    ],
    "Mixed_7b": _mixed_8(),
    "Mixed_7c": _mixed_8(),
}
"""The modules in order; each is a list of branches whose outputs are concatenated."""
AUXILIARY_MODULE = "Mixed_6e"
"""The module whose output the auxiliary head reads."""


@dataclass(frozen=True)
class Logits:
    """What the network says of a batch.

    Attributes:
        main: float32 `[batch, num_classes]`.
        auxiliary: the same from the auxiliary head; None in evaluation, where it has no use.
    """

    main: Any
    auxiliary: Any = None


class InceptionV3(tf.Module):
    """The network: 94 convolutions and 2 in the auxiliary head, each with batch normalisation; 2 classifiers.

    Where an image is not of 299 x 299 pixels, the last pooling takes the mean of whatever grid is left; the
    auxiliary head's pooling and 5 x 5 convolution shrink with a smaller grid, and a mean follows on a larger.

    Args:
        image_size: height and width of the images, pixels, >= 75.
        width_multiplier: factor on the channels of each layer, > 0; none gets fewer than 16 channels.
        num_classes: number of logits, the background included; labels are 0 to `num_classes - 1`.
        compute_dtype: `float32` or `bfloat16`; variables and logits are float32 in any case.
        seed: seed of the initial weights and of dropout, >= 0.

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
    ) -> None:
        super().__init__(name="InceptionV3")
        check_integer(
            "image_size",
            image_size,
            minimum=MINIMUM_IMAGE_SIZE,
            advice="Smaller images leave nothing of the feature map; let the pipeline resize to more.",
        )
        check_number("width_multiplier", width_multiplier, minimum=0, exclusive_minimum=True)
        check_integer("num_classes", num_classes, minimum=2)
        self._dtype = tf.as_dtype(check_choice("compute_dtype", compute_dtype, ("float32", "bfloat16")))
        self._width = width_multiplier
        self._seed = check_integer("seed", seed, minimum=0)
        self.stem, channels = self._chain(STEM, 3, "Conv2d")
        grid = _grid(STEM, image_size)
        self.mixed: dict[str, Any] = {}
        for name, branches in MODULES.items():
            built = [
                self._chain(branch, channels, f"{name}/Branch_{number}")
                for number, branch in enumerate(branches)
            ]
            self.mixed[name] = [layers for layers, _ in built]
            channels = sum(depth for _, depth in built)
            grid = _grid(branches[0], grid)
            if name == AUXILIARY_MODULE:
                self._build_auxiliary(channels, grid, num_classes)
        self.classifier = Classifier(channels, num_classes, "Logits", seed, keep_rate=DROPOUT_KEEP_RATE)

    def _build_auxiliary(self, channels: int, grid: int, num_classes: int) -> None:
        self._auxiliary_pool = min(5, grid)
        kernel = min(5, (grid - self._auxiliary_pool) // 3 + 1)
        self.auxiliary = [
            Convolution(channels, self._depth(128), (1, 1), "AuxLogits/Conv2d_1b", self._seed),
            Convolution(
                self._depth(128),
                self._depth(768),
                (kernel, kernel),
                "AuxLogits/Conv2d_2a",
                self._seed,
                padding="VALID",
                stddev=AUXILIARY_STDDEV,
            ),
        ]
        self.auxiliary_classifier = Classifier(
            self._depth(768), num_classes, "AuxLogits", self._seed, stddev=AUXILIARY_LOGITS_STDDEV
        )

    def _depth(self, depth: int) -> int:
        return max(int(depth * self._width), MINIMUM_DEPTH)

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
                )
                for place, way in enumerate(ways)
            ]
            layers.append(built)
            channels = sum(self._depth(way.depth) for way in ways)
        return layers, channels

    def __call__(self, images: Any, training: bool, step: Any = 0) -> Logits:
        """Runs the network.

        Args:
            images: `[batch, height, width, 3]`, float32 or bfloat16 in [-1, 1], or uint8, scaled here.
            training: whether to normalise by the batch, move the averages, drop features and use the
                auxiliary head.
            step: number of the step, for dropout.
        """
        if images.dtype == tf.uint8:
            images = tf.cast(images, tf.float32) / 127.5 - 1.0
        features = _run(self.stem, tf.cast(images, self._dtype), training)
        auxiliary = None
        for name, branches in self.mixed.items():
            features = tf.concat([_run(branch, features, training) for branch in branches], axis=-1)
            if training and name == AUXILIARY_MODULE:
                pooled = tf.nn.avg_pool2d(features, self._auxiliary_pool, 3, "VALID")
                hidden = self.auxiliary[1](self.auxiliary[0](pooled, training), training)
                auxiliary = self.auxiliary_classifier(hidden, training, step)
        return Logits(self.classifier(features, training, step), auxiliary)

    @property
    def regularized_variables(self) -> list[Any]:
        """The kernels of convolutions and classifiers: what weight decay applies to."""
        return [variable for variable in self.trainable_variables if "/weights" in variable.name]


def _grid(nodes: Sequence[Node], size: int) -> int:
    """Returns the height and width that consecutive nodes leave of `size`."""
    for node in nodes:
        if isinstance(node, Conv) and node.padding == "VALID":
            size = (size - max(node.height, node.width)) // node.strides + 1
        elif node == MAX:
            size = (size - 3) // 2 + 1
    return size


def _run(layers: Sequence[Any], features: Any, training: bool) -> Any:
    for layer in layers:
        if layer == MAX:
            features = tf.nn.max_pool2d(features, 3, 2, "VALID")
        elif layer == MEAN:
            features = tf.nn.avg_pool2d(features, 3, 1, "SAME")
        else:
            ways = [convolution(features, training) for convolution in layer]
            features = ways[0] if len(ways) == 1 else tf.concat(ways, axis=-1)
    return features
