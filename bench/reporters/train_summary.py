"""What a training has come to: a few lines for the screen, and the same as a document."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bench.formatting import plural, printable

if TYPE_CHECKING:
    from bench.train_result import TrainResult
    from trainer.evaluation import Evaluation

WEIGHTS = {"average": "averaged weights (EMA)", "raw": "raw weights"}
"""What a set of weights is called in every output."""


def evaluation_line(step: int, found: Evaluation) -> str:
    """Returns an evaluation in one line, with the set of weights that was used."""
    top_5 = "" if found.accuracy_top_5 is None else f", top-5 {found.accuracy_top_5:.4f}"
    loss = "" if found.mean_loss is None else f", loss {found.mean_loss:.4f}"
    return (
        f"Step {step:,}: top-1 {found.accuracy:.4f}{top_5}{loss} on "
        f"{plural(found.examples, 'example')} with {WEIGHTS[found.weights]}"
    )


def evaluation_document(step: int, found: Evaluation) -> dict[str, Any]:
    """Returns an evaluation as plain numbers and strings, ready for JSON."""
    return {
        "step": step,
        "accuracy": found.accuracy,
        "accuracy_top_5": found.accuracy_top_5,
        "loss": found.mean_loss,
        "examples": found.examples,
        "weights": found.weights,
    }


def train_summary(result: TrainResult, model_dir: str) -> str:
    """Returns the lines: the device first, then steps, loss, examples, evaluation and files."""
    device = result.device
    done = result.step - result.resumed_from
    lines = [
        f"{device.model} on {device.name}, {plural(device.count, 'device')}",
        f"{plural(result.step, 'step')} done, {done:,} of them in this run",
    ]
    if result.loss is not None:
        lines.append(f"loss of the last step {result.loss:.4f}")
    lines.append(
        f"{plural(result.examples_trained, 'example')} trained, {result.examples_fresh:,} of them fresh"
    )
    if result.evaluation is not None:
        lines.append(evaluation_line(result.step, result.evaluation))
    if result.best_step is not None:
        lines.append(f"best evaluation at step {result.best_step:,}")
    if result.export_path is not None:
        lines.append(f"exported to {result.export_path}")
    lines.append(f"checkpoints and metrics.jsonl in {model_dir}")
    return "\n".join(printable(line) for line in lines)


def result_document(result: TrainResult) -> dict[str, Any]:
    """Returns the result as plain numbers, strings and dictionaries, ready for JSON."""
    evaluation = result.evaluation
    return {
        "schema": "pipebench.train",
        "schema_version": 1,
        "device": asdict(result.device),
        "resumed_from": result.resumed_from,
        "step": result.step,
        "loss": result.loss,
        "examples_fresh": result.examples_fresh,
        "examples_trained": result.examples_trained,
        "evaluation": None if evaluation is None else evaluation_document(result.step, evaluation),
        "best_step": result.best_step,
        "export_path": result.export_path,
    }
