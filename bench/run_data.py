"""The data of a run: the user's folder, or the generated default, made where it is not there yet."""

from __future__ import annotations

from bench import default_data
from bench.progress import progress_bar, say
from bench.tensorflow_startup import start_tensorflow
from pipeline.config import PipelineConfig
from pipeline.data_source import DataSource, open_data_source


def is_generated(config: PipelineConfig) -> bool:
    """Whether the configuration names the generated default data."""
    return config.use_data == "real" and config.data_dir == default_data.default_data_dir()


def open_run_data(config: PipelineConfig) -> DataSource:
    """Returns the training data; without TensorFlow where the folder is a local one that exists.

    Says on stderr what is generated, ignored and doubtful.

    Raises:
        DataError: no usable data.
    """
    if config.use_data == "fake":
        from pipeline.fake_data import FAKE_DATA_NOTE, fake_source

        say(FAKE_DATA_NOTE)
        return fake_source(config.train_split)
    if is_generated(config):
        if default_data.is_made(config.data_dir):
            say(f"Using the generated images in {config.data_dir}")
        else:
            _generate(config.data_dir)
    source = open_data_source(config.data_dir, config.train_split, config.file_pattern)
    for warning in source.warnings:
        say(f"Warning: {warning}")
    if source.ignored:
        say(f"Ignored in {source.data_dir}: {', '.join(source.ignored)}")
    return source


def _generate(data_dir: str) -> None:
    say(f"Generating {default_data.EXAMPLES} images, once, in {data_dir}")
    start_tensorflow()
    with progress_bar("Generating images") as bar:
        default_data.make_default_data(
            data_dir, lambda done, total: bar.update(done / total, f"{done} images")
        )
