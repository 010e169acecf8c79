"""The main job: a baseline without echo, then the run, then everything measured in one record."""

from __future__ import annotations

import datetime
from typing import Any

from bench.elastic_echo import ElasticEcho
from bench.environment import describe_environment, usable_cores
from bench.phase_runner import PhaseRunner
from bench.prediction import HostCosts, device_costs, measure_host_costs, predict, smallest_sufficient_factor
from bench.progress import progress_bar, say
from bench.result import Phase, Prediction, RunResult
from bench.run_options import RunLimit, RunOptions
from bench.run_warnings import run_warnings
from bench.trainers import make_trainer, steps_per_loop
from bench.verdict_text import verdict_text
from echoing.errors import DataError, PipebenchError
from pipeline.data_source import DataSource
from pipeline.diagnosis import PIPELINE_ERRORS, explain_failure
from pipeline.image_decoding import DecodeOptions
from pipeline.input_pipeline import InputPipeline
from pipeline.preprocessing_stages import decoding_options
from pipeline.skipping import NO_USABLE_RECORD
from profiling.step_meter import WarmUp
from trainer.step import DeviceDescription


class RunInterruptedError(Exception):
    """The run ended before its time; what it measured until then is in `result`.

    Attributes:
        result: the incomplete record.
        exit_code: 130 for an interrupt, 143 for a termination, as shells report them; that of the error that
            ended it otherwise.
        error: that error, or None.
    """

    def __init__(self, result: RunResult, exit_code: int, error: PipebenchError | None = None) -> None:
        super().__init__(result.interrupted_by)
        self.result = result
        self.exit_code = exit_code
        self.error = error


class Terminated(KeyboardInterrupt):
    """SIGTERM, treated like Ctrl-C but reported as what it is."""


class Run:
    """One run of the main job.

    Args:
        options: the options, completed by `bench.trainers.complete_options`; the pipeline keeps its tags.
        source: the data.
        generated: whether the data is the generated default.
        command: the command that repeats the run, for the record.
    """

    def __init__(self, options: RunOptions, source: DataSource, generated: bool, command: str) -> None:
        self._options = options.with_pipeline(epochs=options.limit.epochs)
        self._source = source
        self._generated = generated
        self._command = command
        self._created_at = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        self._pipeline = InputPipeline(self._options.pipeline, is_training=True, source=source)
        self._elastic: ElasticEcho | None = None
        if options.pipeline.is_elastic:
            self._elastic = ElasticEcho(
                self._pipeline, options.trainer == "emulated", steps_per_loop(options)
            )
        self._baseline: Phase | None = None
        self._warnings: list[str] = []
        self._costs: HostCosts | None = None

    def execute(self) -> RunResult:
        """Runs the phases and returns the record.

        Raises:
            PipebenchError: the data cannot be read, decoded or trained on, and no step was made.
            RunInterruptedError: Ctrl-C, a termination, or an error after some steps; it carries the
                incomplete record.
        """
        # Made before the baseline, so that minutes do not pass before an option is refused.
        runner = self._runner(self._pipeline, self._options.limit, self._elastic)
        self._pipeline.stages()
        try:
            if self._options.baseline:
                self._measure_baseline()
            self._run_phase(runner, "Run")
            if runner.meter.steps == 0:
                raise self._nothing_trained()
        except KeyboardInterrupt as interrupt:
            terminated = isinstance(interrupt, Terminated)
            result = self._result(runner.phase(), "SIGTERM" if terminated else "Ctrl-C")
            raise RunInterruptedError(result, 143 if terminated else 130) from None
        except PipebenchError as error:
            if not runner.meter.steps:
                raise
            result = self._result(runner.phase(), str(error))
            raise RunInterruptedError(result, error.exit_code, error) from error
        return self._result(runner.phase(), "")

    def _measure_baseline(self) -> None:
        limit = self._options.limit
        config = self._options.with_pipeline(epochs=None).pipeline
        endless = InputPipeline(config, True, self._source)
        plain = endless.without_echo()
        if plain.steps_in() == 0:
            self._warnings.append(
                f"No baseline: {self._source.records} records, batch {config.batch_size}: no full batch "
                "without echo."
            )
            return
        with progress_bar("Measuring the pipeline alone"):
            self._costs = self._guarded(lambda: measure_host_costs(endless))
        steps = limit.steps
        seconds = self._options.baseline_seconds
        # By steps where the run is, but never longer than a baseline may be.
        baseline_limit = RunLimit(steps=steps) if steps else RunLimit(seconds=seconds)
        runner = self._runner(plain, baseline_limit, max_seconds=seconds)
        try:
            self._run_phase(runner, "Baseline without echo")
        finally:
            # Also when it was interrupted: what was measured is kept.
            if runner.meter.steps:
                self._baseline = runner.phase()

    def _runner(
        self,
        pipeline: InputPipeline,
        limit: RunLimit,
        elastic: ElasticEcho | None = None,
        max_seconds: float | None = None,
    ) -> PhaseRunner:
        # A batch that the device holds is repeated in the run alone: the baseline's pipeline has no echo.
        options = self._options if pipeline is self._pipeline else self._options.with_pipeline(echo_factor=1)
        trainer = make_trainer(options, self._source)
        self._device: DeviceDescription = trainer.device
        # Steps and epochs are counted out by the user, who may want few: only the first step is left out.
        timed = limit.seconds is not None
        warm_up = WarmUp(options.warmup_steps, options.warmup_seconds if timed else 0.0)
        return PhaseRunner(pipeline, trainer, limit, warm_up, elastic, max_seconds)

    def _run_phase(self, runner: PhaseRunner, title: str) -> None:
        device = self._device
        where = f" on {'emulated ' if device.emulated else ''}{device.name}"
        with progress_bar(f"{title}{where}") as bar:
            runner.on_step = lambda: bar.update(runner.progress, _rates(runner))
            self._guarded(runner.run)

    def _guarded(self, work: Any) -> Any:
        """Does some work and explains a failure of the pipeline in the user's words."""
        try:
            return work()
        except PIPELINE_ERRORS as error:
            if NO_USABLE_RECORD in str(error):
                raise self._nothing_trained() from error
            say("The pipeline failed; looking for the record that it failed on.")
            raise explain_failure(
                error, self._source, self._options.pipeline.use_annotated_boxes, decoding=self._decoding
            ) from error

    @property
    def _decoding(self) -> DecodeOptions:
        return decoding_options(self._options.pipeline)

    def _nothing_trained(self) -> DataError:
        first = explain_failure(
            DataError("the data ended without one"),
            self._source,
            self._options.pipeline.use_annotated_boxes,
            decoding=self._decoding,
            advice="`pipebench data check` lists them all.",
        )
        return DataError(
            f"No batch of {self._options.pipeline.batch_size} usable records. The first: {first}"
        )

    def _result(self, phase: Phase, interrupted_by: str) -> RunResult:
        options, source = self._options, self._source
        device = self._device
        config = options.to_dict()
        echo = self._describe_echo(phase)
        return RunResult(
            phase=phase,
            baseline=self._baseline,
            complete=not interrupted_by,
            interrupted_by=interrupted_by,
            verdict_text=verdict_text(phase, self._baseline, device, echo),
            warnings=[*source.warnings, *self._warnings, *run_warnings(options, source, phase)],
            echo=echo,
            accelerator={
                "name": device.name,
                "kind": device.kind,
                "emulated": device.emulated,
                "count": device.count,
                "model": device.model,
                "step_seconds": device.step_seconds,
                "batch_size": options.pipeline.batch_size,
                "provenance": device.provenance,
            },
            data={
                "data_dir": source.data_dir,
                "split": source.split,
                "shards": len(source.shards),
                "records": source.records,
                "record_bytes": source.mean_record_bytes,
                "generated": self._generated,
                "skipped_records": phase.counts.skipped_records,
                "ignored_files": list(source.ignored),
                "stages": list(self._pipeline.stages().names),
                "image_dtype": options.pipeline.dtype,
            },
            config=config,
            environment=describe_environment(),
            command=self._command,
            created_at=self._created_at,
            prediction=self._predict(phase),
        )

    def _describe_echo(self, phase: Phase) -> dict[str, Any]:
        config = self._options.to_dict()
        counts = phase.counts
        echo = {
            "factor": config["echo_factor"],
            "mean_factor": counts.trained_examples / counts.fresh_examples if counts.fresh_examples else None,
            "insert_point": config["insert_point"],
            "shuffle_buffer_size": self._pipeline.example_shuffle_size,
        }
        if self._elastic is not None:
            echo |= {"max_factor": self._options.pipeline.max_echo_factor, "trace": self._elastic.trace()}
        return echo

    def _predict(self, phase: Phase) -> Prediction | None:
        if self._costs is None or self._baseline is None:
            return None
        device = device_costs(
            self._baseline,
            shares_the_cores=self._device.kind == "cpu",
            holds_batches=self._options.pipeline.parsed_insert_point.is_on_device,
        )
        if device is None:
            return None
        config = self._options.pipeline
        factor: object = config.parsed_echo_factor
        if config.is_elastic:
            factor = smallest_sufficient_factor(self._costs, device, usable_cores(), config.max_echo_factor)
        return predict(self._costs, device, usable_cores(), factor, phase)


def _rates(runner: PhaseRunner) -> str:
    trained = runner.meter.trained_examples_per_second
    if trained is None:
        return f"step {runner.meter.steps}, warming up"
    fresh = runner.meter.fresh_examples_per_second
    utilization = runner.meter.accelerator_utilization
    return f"step {runner.meter.steps}: {trained:,.0f} images/s, {fresh:,.0f} fresh, AU {utilization:.0%}"
