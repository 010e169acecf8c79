"""Composable stages of a TensorFlow input pipeline, and the tools for its data sets.

The stages (`Storage`, `Decode`, `Augment`, `Batch`, `Transfer`, `Echo`) go from dataset to dataset and work
alone with `dataset.apply`; `InputPipeline` composes them from one `PipelineConfig`.

Importing the package does not import TensorFlow; using a stage does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pipeline.config import PipelineConfig

if TYPE_CHECKING:
    from pipeline.augment import Augment
    from pipeline.batch import Batch
    from pipeline.decode import Decode
    from pipeline.echo_stage import Echo, EchoOnDevice, StampUpstream
    from pipeline.input_pipeline import InputPipeline
    from pipeline.stage import Pipeline, Stage
    from pipeline.storage import Storage, shards_dataset
    from pipeline.transfer import Transfer

_HOMES = {
    "Augment": "augment",
    "Batch": "batch",
    "Decode": "decode",
    "Echo": "echo_stage",
    "EchoOnDevice": "echo_stage",
    "InputPipeline": "input_pipeline",
    "Pipeline": "stage",
    "Stage": "stage",
    "StampUpstream": "echo_stage",
    "Storage": "storage",
    "Transfer": "transfer",
    "shards_dataset": "storage",
}

__all__ = [
    "Augment",
    "Batch",
    "Decode",
    "Echo",
    "EchoOnDevice",
    "InputPipeline",
    "Pipeline",
    "PipelineConfig",
    "Stage",
    "StampUpstream",
    "Storage",
    "Transfer",
    "shards_dataset",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"pipeline.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
