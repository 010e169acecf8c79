"""Step times of accelerators that are not here, as data with their provenance. Imports no TensorFlow."""

from __future__ import annotations

from dataclasses import dataclass

from echoing.checks import check_integer
from echoing.errors import OptionError


@dataclass(frozen=True)
class Preset:
    """The step time of one model on one accelerator.

    Attributes:
        name: the accelerator, as `--accelerator` takes it.
        model: the model that was timed.
        batch_size: examples of the timed step, over all cores of the accelerator.
        step_seconds: time of that step when it never waits for data.
        provenance: where the two numbers come from, in words fit for a report.
    """

    name: str
    model: str
    batch_size: int
    step_seconds: float
    provenance: str

    def step_seconds_for(self, batch_size: int) -> float:
        """Returns the step time for another batch size, in seconds: proportional to the batch.

        Linear because a convolutional network does the same work for each example and one point is all that
        is known. It is wrong for small batches, which fill an accelerator badly and pay the fixed cost of a
        step (launch, weight update, gradient exchange), so that the real step takes longer than this; and for
        batches that do not fit into its memory, for which no step time exists.

        Args:
            batch_size: examples of a step, over all cores.

        Raises:
            OptionError: the batch size is no integer >= 1.
        """
        return self.step_seconds * (check_integer("batch_size", batch_size, minimum=1) / self.batch_size)


_DLIO = "workload constants of DLIO and MLPerf Storage for ResNet-50"

PRESETS = {
    preset.name: preset
    for preset in (
        Preset(
            name="tpu-v2-8",
            model="Inception v3",
            batch_size=1024,
            step_seconds=0.815,
            provenance=(
                "step time: trace in the Cloud TPU Inception v3 guide, about 815 ms of TPU compute "
                "without infeed stalls; the guide does not name the batch of that trace, so the batch is the "
                "reference trainer's default, 1024"
            ),
        ),
        Preset("v100", "ResNet-50", 64, 0.195, f"{_DLIO}: 0.195 s a step of 64"),
        Preset("a100", "ResNet-50", 400, 0.435, f"{_DLIO}: 0.435 s a step of 400"),
        Preset("h100", "ResNet-50", 400, 0.224, f"{_DLIO}: 0.224 s a step of 400"),
    )
}
"""Every preset by name."""


def get_preset(name: str) -> Preset:
    """Returns the preset of that name; upper and lower case are the same.

    Raises:
        OptionError: there is none; the message lists the names.
    """
    preset = PRESETS.get(str(name).lower())
    if preset is None:
        raise OptionError(
            "accelerator",
            name,
            f"one of {', '.join(PRESETS)}",
            "For another accelerator give the step time and the batch size that you measured on it.",
        )
    return preset
