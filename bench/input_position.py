"""How far a training has come in its data: what a checkpoint holds of it, and where another run goes on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from pipeline.config import PipelineConfig
from pipeline.data_source import DataSource

_INPUT = "input"


@dataclass(frozen=True)
class InputPosition:
    """The state of the input and the counts of examples.

    Attributes:
        batch: number of the batch to begin with, of each host.
        uses: how many of its uses by the device are done.
        example: fresh examples that were read; for an elastic echo only, whose batches tell nothing.
        echo_value: the elastic factor at the time.
        examples_fresh: examples trained that had just been read, over all hosts.
        examples_trained: all examples trained.
        seed: of weights, dropout, shuffles and augmentation.
    """

    batch: int = 0
    uses: int = 0
    example: int = 0
    echo_value: float = 1.0
    examples_fresh: int = 0
    examples_trained: int = 0
    seed: int = 0

    def to_scalars(self, identity: Mapping[str, Any]) -> dict[str, Any]:
        """Returns it as it is saved.

        Args:
            identity: of `input_identity`, which says what the numbers count in.
        """
        return asdict(self) | {_INPUT: json.dumps(dict(identity), sort_keys=True)}

    @classmethod
    def from_scalars(cls, scalars: Mapping[str, Any]) -> InputPosition:
        """Reads what `to_scalars` gave."""
        return cls(**{field.name: scalars[field.name] for field in fields(cls)})

    def moved_to(self, config: PipelineConfig, workers: int) -> InputPosition:
        """Returns about the same place of the data in the batches of other options.

        Fresh examples decide: none is skipped, and less than the elements of a batch come once more. The
        order is another one, so that within an epoch some examples come twice and others not at all.

        Args:
            config: the options to go on with.
            workers: the hosts that share the data.
        """
        fresh = self.examples_fresh // workers
        examples = config.parsed_echo_factor.outputs_of(fresh) if config.echoes_examples else fresh
        batches = examples // (config.batch_size // workers)
        point = config.parsed_insert_point
        if config.is_echoed and point.echoes_batches and not point.is_on_device:
            batches = config.parsed_echo_factor.outputs_of(batches)
        return InputPosition(
            batch=0 if config.is_elastic else batches,
            example=fresh if config.is_elastic else 0,
            examples_fresh=self.examples_fresh,
            examples_trained=self.examples_trained,
            seed=self.seed,
        )


def input_identity(config: PipelineConfig, source: DataSource, workers: int, seed: int) -> dict[str, Any]:
    """Returns what the number of a batch belongs to: with other values it names other examples.

    Args:
        config: the pipeline's options.
        source: the training data.
        workers: the hosts that share them.
        seed: of the shuffles.
    """
    return {
        "seed": seed,
        "train_batch_size": config.batch_size,
        "workers": workers,
        "echo_factor": "elastic" if config.is_elastic else str(config.parsed_echo_factor),
        "insert_point": config.parsed_insert_point.value if config.is_echoed else "none",
        "echo_shuffle": config.echo_shuffle,
        "shuffle_buffer_size": config.shuffle_buffer_size,
        "shuffle_buffer_bytes": config.shuffle_buffer_bytes,
        "batch_shuffle_buffer_size": config.batch_shuffle_buffer_size,
        "batch_shuffle_buffer_bytes": config.batch_shuffle_buffer_bytes,
        "cycle_length": config.cycle_length,
        "deterministic": config.deterministic,
        "use_data": config.use_data,
        "shards": len(source.shards),
        "records": source.records,
    }


def changes(scalars: Mapping[str, Any], identity: Mapping[str, Any]) -> str:
    """Returns what differs between a checkpoint's input and that asked for, in words; empty for nothing.

    Args:
        scalars: the position as it was saved.
        identity: of the run that goes on.
    """
    before: dict[str, Any] = json.loads(scalars[_INPUT])
    return ", ".join(
        f"{name} {before.get(name)} -> {identity.get(name)}"
        for name in sorted(before.keys() | identity.keys())
        if before.get(name) != identity.get(name)
    )
