"""Comparisons built by hand, and pipelines whose every step the test has written itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.pipelines.timing import Timing
from bench.pipelines.variants import Variant

QUICK = Timing(
    measured_seconds=0.01,
    warm_up_seconds=0.0,
    settle_seconds=0.0,
    start_patience_seconds=60.0,
    answer_patience_seconds=60.0,
    stop_patience_seconds=10.0,
)


@pytest.fixture
def quick() -> Timing:
    """Measurements of 10 ms without warm-up, waited for patiently."""
    return QUICK


@pytest.fixture
def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Variant]:
    """Returns a function from a name and the body of `open_batches(task)` to a variant that runs it."""
    folder = tmp_path / "modules"
    folder.mkdir()
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))

    def write(name: str, *lines: str) -> Variant:
        body = "".join(f"    {line}\n" for line in lines)
        (folder / f"scripted_{name}.py").write_text(f"import os, sys\n\ndef open_batches(task):\n{body}")
        return Variant(name, f"scripted {name}", f"scripted_{name}", "uint8")

    return write
