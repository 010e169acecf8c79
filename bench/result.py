"""The record of one run: everything measured lands here, and reports are drawn from it alone."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from bench.result_shape import shape_problem
from echoing.errors import DataError

SCHEMA = "pipebench.run"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Steps:
    """The steps of a phase as columns of equal length; times are seconds since the phase began.

    Attributes:
        wait_seconds: device idle before the step, for lack of data.
        start_seconds: the device began the step.
        end_seconds: the device finished it.
        transfer_seconds: copy of the batch to the device.
        fresh_examples: examples of the batch used for the first time since they were read.
        trained_examples: examples of the batch.
        warm_up: whether the step is left out of the rates.
        loss: training loss, or None.
    """

    wait_seconds: list[float] = field(default_factory=list)
    start_seconds: list[float] = field(default_factory=list)
    end_seconds: list[float] = field(default_factory=list)
    transfer_seconds: list[float] = field(default_factory=list)
    fresh_examples: list[int] = field(default_factory=list)
    trained_examples: list[int] = field(default_factory=list)
    warm_up: list[bool] = field(default_factory=list)
    loss: list[float | None] = field(default_factory=list)


@dataclass(frozen=True)
class Counts:
    """Exact counts over the whole phase, warm-up included."""

    steps: int
    fresh_examples: int
    repeated_examples: int
    trained_examples: int
    skipped_records: int
    measured_steps: int


@dataclass(frozen=True)
class Throughput:
    """Rates over the measured steps (warm-up left out); None where nothing could be measured.

    Attributes:
        fresh_examples_per_second: examples used for the first time.
        trained_examples_per_second: examples used, repeats included.
        measured_seconds: the span that the rates cover.
        warm_up_steps: how many steps were left out before it.
    """

    fresh_examples_per_second: float | None
    trained_examples_per_second: float | None
    measured_seconds: float
    warm_up_steps: int


@dataclass(frozen=True)
class Phase:
    """One measured phase: the baseline without echo, or the run itself.

    Attributes:
        verdict: `host-bound`, `moderately host-bound`, `device-bound`, or None without a measured step.
        accelerator_utilization: busy / (busy + waiting for data) over the measured steps, 0 to 1, or None.
        counts: exact counts.
        throughput: rates.
        steps: the step columns.
        upstream_arrivals_seconds: for some steps, the times (seconds since the phase began) at which fresh
            elements left the upstream side between the end of the step before and the end of that step:
            pairs `[step index, [times]]`. Elements that no step used are not known and not in it.
        freshness: what the ids of the examples say (`echoing.freshness.FreshnessReport`); None if nothing
            was counted.
    """

    verdict: str | None
    accelerator_utilization: float | None
    counts: Counts
    throughput: Throughput
    steps: Steps
    upstream_arrivals_seconds: list[tuple[int, list[float]]] = field(default_factory=list)
    freshness: dict[str, Any] | None = None


@dataclass(frozen=True)
class Prediction:
    """What the throughput model said before the run, beside what the run measured.

    Attributes:
        trained_examples_per_second: predicted.
        measured_trained_examples_per_second: measured.
        error: predicted / measured - 1, or None.
        basis: the assumption in words.
    """

    trained_examples_per_second: float | None
    measured_trained_examples_per_second: float | None
    error: float | None
    basis: str


@dataclass(frozen=True)
class RunResult:
    """One run of `pipebench run`.

    Attributes:
        phase: the run itself.
        baseline: the same pipeline without echo, in the same command, or None.
        complete: False when the run was interrupted; then the figures cover what was done until then.
        interrupted_by: what ended it early, or an empty string.
        verdict_text: the verdict in words, a paragraph.
        warnings: what the user should know before trusting the figures.
        echo: `factor` (a number, or `elastic`), `mean_factor` (trained / fresh examples), `insert_point`,
            `shuffle_buffer_size`, `max_factor` and `trace` (`[step, factor]` for every change) if elastic.
        accelerator: `name`, `kind`, `emulated`, `count`, `model`, `step_seconds`, `batch_size`, `provenance`.
        data: `data_dir`, `split`, `shards`, `records`, `record_bytes`, `generated`, `skipped_records`,
            `ignored_files`, `stages` (names in order, with the echo in its place), `image_dtype`.
        config: every option of the command, with its value.
        environment: versions, processor, memory.
        command: the exact command to repeat the run.
        created_at: start of the run, ISO 8601 with time zone.
        prediction: predicted against measured, or None without a baseline.
    """

    phase: Phase
    baseline: Phase | None
    complete: bool
    interrupted_by: str
    verdict_text: str
    warnings: list[str]
    echo: dict[str, Any]
    accelerator: dict[str, Any]
    data: dict[str, Any]
    config: dict[str, Any]
    environment: dict[str, Any]
    command: str
    created_at: str
    prediction: Prediction | None

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form: the figures of the run itself stand at the top level."""
        document: dict[str, Any] = {"schema": SCHEMA, "schema_version": SCHEMA_VERSION}
        document |= {"complete": self.complete, "interrupted_by": self.interrupted_by}
        document |= _plain(asdict(self.phase))
        for item in fields(self):
            if item.name not in ("phase", "complete", "interrupted_by"):
                document[item.name] = _plain(_as_plain(getattr(self, item.name)))
        return document

    def to_json(self) -> str:
        """Returns the JSON text. Values that could not be measured are null, never NaN."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str, source: str) -> RunResult:
        """Reads what `to_json` wrote.

        Args:
            text: the JSON text.
            source: the path, for messages.

        Raises:
            DataError: not JSON, not a run result, or of a newer version.
        """
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{source} is not JSON: {error}. Name the folder of a finished run.") from error
        if not isinstance(document, dict) or document.get("schema") != SCHEMA:
            raise DataError(f"{source} is not the result of a run (no schema {SCHEMA!r} in it).")
        if document.get("schema_version") != SCHEMA_VERSION:
            raise DataError(
                f"{source} has schema version {document.get('schema_version')!r}, but this pipebench reads "
                f"version {SCHEMA_VERSION}. Use the pipebench that wrote it, or run again."
            )
        problem = _document_problem(document)
        if problem:
            raise DataError(f"{source} is damaged: {problem}. Run again.")
        return cls(
            phase=_phase(document),
            baseline=None if document["baseline"] is None else _phase(document["baseline"]),
            prediction=None if document["prediction"] is None else Prediction(**document["prediction"]),
            **{
                item.name: document[item.name]
                for item in fields(cls)
                if item.name not in ("phase", "baseline", "prediction")
            },
        )


def _document_problem(document: dict[str, Any]) -> str:
    # In the JSON form the run's own phase stands at the top level; here it goes back into its place.
    own = {item.name for item in fields(Phase)}
    nested = {key: value for key, value in document.items() if key not in {"schema", "schema_version", *own}}
    nested["phase"] = {key: value for key, value in document.items() if key in own}
    problem = shape_problem(nested, RunResult)
    for phase in (document, document.get("baseline")):
        if not problem and phase is not None:
            lengths = {name: len(column) for name, column in phase["steps"].items()}
            if len(set(lengths.values())) > 1:
                problem = f"the columns of its steps differ in length: {lengths}"
    return problem


def _phase(document: dict[str, Any]) -> Phase:
    return Phase(
        verdict=document["verdict"],
        accelerator_utilization=document["accelerator_utilization"],
        counts=Counts(**document["counts"]),
        throughput=Throughput(**document["throughput"]),
        steps=Steps(**document["steps"]),
        upstream_arrivals_seconds=[
            (index, list(times)) for index, times in document["upstream_arrivals_seconds"]
        ],
        freshness=document["freshness"],
    )


def _as_plain(value: Any) -> Any:
    return asdict(value) if isinstance(value, Phase | Prediction) else value


def _plain(value: Any) -> Any:
    """Turns non-finite numbers into None and tuples into lists, all the way down."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
