"""Which variants a user asks for; ours may have options: `ours_uint8+fancy_upscaling=true`."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

from bench.pipelines import variants as known
from bench.pipelines.variants import Variant
from echoing.errors import OptionError
from pipeline.config import PipelineConfig

KEEP_FREED_MEMORY = "keep_freed_memory"
"""The one setting that is no option of the pipeline: whether the allocator keeps freed memory."""

_OURS = ("ours_float32", "ours_uint8")
_FIXED = ("data_dir", "train_split", "batch_size", "image_size", "dtype", "keep_tags", "echo_factor")


def choose_variants(names: str | None = None) -> tuple[Variant, ...]:
    """Returns the variants of a comma-separated list, in the order of the report; None for all installed.

    Args:
        names: of `variants.VARIANTS`; ours may carry options, as in `ours_uint8+fancy_upscaling=true`.

    Raises:
        OptionError: no name, an unknown one, one whose package is not installed, or unknown options.
    """
    if names is None:
        return tuple(variant for variant in known.VARIANTS if variant.is_installed)
    by_name = {variant.name: variant for variant in known.VARIANTS}
    wanted = list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
    for name in wanted:
        base = name.split("+")[0]
        if base not in by_name:
            raise OptionError("variants", name, f"names of {', '.join(by_name)}")
        if not by_name[base].is_installed:
            raise OptionError(
                "variants",
                name,
                "variants whose packages are installed",
                f"Install them with `{by_name[base].install_command}`.",
            )
    if not wanted:
        raise OptionError("variants", names, f"names of {', '.join(by_name)}, separated by commas")
    places = {variant.name: place for place, variant in enumerate(known.VARIANTS)}
    wanted.sort(key=lambda name: places[name.split("+")[0]])
    return tuple(_with_settings(by_name[name.split("+")[0]], name) for name in wanted)


def _with_settings(variant: Variant, name: str) -> Variant:
    """Returns the variant with the options that a name asks for behind its plus signs.

    Args:
        variant: what stands before the first plus sign.
        name: the whole name. Values are JSON, or else words.

    Raises:
        OptionError: not one of ours, no such option, or a value that is not allowed.
    """
    words = name.split("+")[1:]
    if not words:
        return variant
    if variant.name not in _OURS:
        raise OptionError("variants", name, f"options with {' and '.join(_OURS)} only")
    settings: dict[str, Any] = {}
    allowed = {field.name for field in fields(PipelineConfig)} - set(_FIXED) | {KEEP_FREED_MEMORY}
    for word in words:
        key, equals, value = word.partition("=")
        if key not in allowed or not equals:
            raise OptionError(
                "variants", name, "options of the pipeline as `option=value`", f"There is no `{word}`."
            )
        settings[key] = _parsed(value)
    # Refused now and not by the process that would run it.
    PipelineConfig("data", **{key: value for key, value in settings.items() if key != KEEP_FREED_MEMORY})
    return replace(
        variant,
        name=name,
        description=f"{variant.description}; {', '.join(words)}",
        settings=tuple(settings.items()),
    )


def _parsed(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value
