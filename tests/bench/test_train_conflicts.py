"""Options of a training without effect are refused before anything is read."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    "words",
    [
        ("--cold-epochs", 1),
        ("--capped-warmup",),
        ("--moving-average-decay", 0.9, "--no-moving-average"),
        ("--summary-steps", 5, "--no-summaries"),
        ("--auxiliary-weight", 0.1, "--model", "resnet18"),
        ("--train-steps-per-eval", 5, "--mode", "train"),
        ("--eval-timeout", 5),
        ("--max-echo-factor", 3, "--echo-factor", 2),
        ("--fancy-upscaling", "--parity"),
    ],
)
def test_option_without_effect_is_refused_by_its_flag(cli_invoke, tmp_path, words):
    result = cli_invoke("train", "--data-dir", tmp_path / "none", "--model-dir", tmp_path / "m", *words)
    assert result.exit_code == 2
    assert f"{words[0] if words[0] != '--capped-warmup' else '--reference-warmup'} would have no effect" in (
        result.stderr
    )
    assert not (tmp_path / "m").exists()
