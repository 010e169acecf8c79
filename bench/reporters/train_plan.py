"""The plan and the findings of a dry run, for the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench.formatting import plural, printable

if TYPE_CHECKING:
    from bench.dry_run import DryRun


def plan_text(run: DryRun, note: str) -> str:
    """Returns the plan as a table of two columns, then warnings and problems.

    Args:
        run: what was found.
        note: what every output of a dry run says.
    """
    width = max((len(name) for name, _ in run.plan), default=0)
    lines = [note, *(f"{name:<{width}}  {value}" for name, value in run.plan)]
    lines += [f"Warning: {warning}" for warning in run.warnings]
    lines += [f"Problem: {problem}" for problem in run.problems]
    verdict = plural(len(run.problems), "problem") if run.problems else "nothing speaks against it"
    return "\n".join(printable(line) for line in [*lines, f"Dry run: {verdict}."])
