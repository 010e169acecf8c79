from __future__ import annotations

import pytest

from trainer.models.resnet_architecture import RESNET18, RESNET50, ResNetArchitecture


@pytest.mark.parametrize(("architecture", "layers"), [(RESNET18, 18), (RESNET50, 50)])
def test_network_has_as_many_layers_with_weights_as_its_name_says(
    architecture: ResNetArchitecture, layers: int
) -> None:
    in_block = 3 if architecture.bottleneck else 2
    # The first convolution and the classifier count, the projections on shortcuts do not.
    assert 1 + in_block * sum(architecture.blocks) + 1 == layers
    assert architecture.name == f"ResNet{layers}"
