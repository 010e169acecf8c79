"""The page of a run: one self-contained file that opens from disk, offline and without JavaScript."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from bench.formatting import printable
from bench.reporters import findings
from bench.reporters.charts import Chart
from bench.result import RunResult

FILE_NAME = "report.html"

TEMPLATE = "report.html.j2"

GLOSSARY = (
    ("fresh example", "an example that was read from storage, in its first use"),
    ("repeat", "a further use of an example that was read before; the echo makes them"),
    ("trained examples", "fresh examples and repeats: all that went through a training step"),
    ("echo factor e", "how often each element of the upstream side is used; at least 1"),
    ("insertion point", "the boundary between two stages where the echo stands"),
    (
        "upstream, downstream",
        "everything before and after the insertion point; downstream includes the step",
    ),
    ("AU", "accelerator utilisation: busy time / (busy time + time waiting for data)"),
    ("host-bound", "the device waits for the host's input pipeline"),
    ("device-bound", "the input pipeline waits for the device"),
    ("warm-up steps", "first steps, with compilation and empty buffers; counted, but left out of the rates"),
    ("baseline", "a short phase of the same command with the echo taken out"),
)


def html_page(result: RunResult, charts: Sequence[Chart]) -> str:
    """Returns the page.

    Everything in a result may come from elsewhere (folder names, a file edited by hand): the template escapes
    all of it but the charts, which matplotlib escaped.

    Args:
        result: the run.
        charts: drawn from the same run; a missing one is named with its reason.
    """
    template = (resources.files("bench") / "templates" / TEMPLATE).read_text(encoding="utf-8")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_finalize
    )
    accelerator = {key: value for key, value in result.accelerator.items() if value not in (None, "")}
    return environment.from_string(template).render(
        result=result,
        headline=findings.headline(result),
        tone=_TONES.get(result.phase.verdict or "", "unknown"),
        reason=findings.reason(result),
        notices=findings.notices(result),
        run_label=findings.echo_label(result),
        rows=findings.key_figures(result),
        prediction=findings.prediction_sentence(result),
        method=findings.method_sentences(result),
        mlperf=findings.MLPERF_NOTE if findings.has_echo(result) else "",
        charts=[(chart, Markup(chart.svg)) for chart in charts],
        tables=[
            ("Options", table_rows(result.config)),
            ("Echo", table_rows(result.echo)),
            ("Accelerator", table_rows(accelerator)),
            ("Data", table_rows(result.data)),
            ("Environment", table_rows(result.environment)),
        ],
        glossary=GLOSSARY,
    )


def table_rows(mapping: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Returns names and values of a free mapping; nested mappings get dotted names."""
    rows: list[tuple[str, str]] = []
    for key, value in mapping.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            rows += table_rows(value, f"{name}.")
        else:
            rows.append((name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))
    return rows


_TONES = {"host-bound": "host", "moderately host-bound": "moderate", "device-bound": "device"}


def _finalize(value: Any) -> Any:
    # Also keeps lone surrogates, as in names of files that are not UTF-8, from breaking the encoding.
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
