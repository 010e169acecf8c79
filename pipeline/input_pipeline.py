"""The input pipeline: all stages composed from one configuration."""

from __future__ import annotations

import random
import warnings
from dataclasses import replace

import tensorflow as tf

from echoing.checks import check_integer
from echoing.errors import DataError, EchoWarning, OptionError
from echoing.insertion_point import InsertionPoint
from echoing.shuffle_budget import elements_for_budget
from pipeline.batch import Batch
from pipeline.cache_location import cache_path
from pipeline.config import PipelineConfig
from pipeline.data_source import DataSource, open_data_source
from pipeline.echo_insertion import insert_echo
from pipeline.element_bytes import example_bytes
from pipeline.fake_data import LABELS, FakeData, fake_numbers, fake_source
from pipeline.preprocessing_stages import block_examples, decode_stage, preprocessing_stages
from pipeline.skipping import SkipCounter
from pipeline.stage import Pipeline
from pipeline.starting import started_at
from pipeline.storage import Storage, shards_dataset
from pipeline.transfer import Transfer


class InputPipeline:
    """Reads, decodes, augments, echoes, batches and hands over images.

    Used like the class of the Cloud TPU Inception v3 guide: `InputPipeline(config, is_training)` is made once
    and called, with a batch size and an input context where there are several hosts, for the dataset.

    Length: in training floor(floor(records x epochs x e) / batch size) batches for an echo of examples; in
    evaluation one pass, with a smaller last batch. tf.data does not know it; `steps_in` does.

    Determinism: see `PipelineConfig.deterministic` and `seed`; the augmentation is keyed by example and
    repeat, so that a seed reproduces it whatever the parallelism.

    Elastic echo: of examples, the factor is `echo_variable`, which whoever runs the training assigns. Of
    batches, the pipeline has no echo: the consumer uses a batch again while the next one is not ready.

    Args:
        config: every option.
        is_training: training (shuffled, distorted, echoed) or evaluation.
        source: the shards, if they were opened before; None opens them now.

    Raises:
        DataError: no usable shards, or too few records for one batch.
    """

    def __init__(
        self, config: PipelineConfig, is_training: bool = True, source: DataSource | None = None
    ) -> None:
        self.config = config
        self.is_training = is_training
        split = config.train_split if is_training else config.eval_split
        self._is_fake = config.use_data == "fake"
        if self._is_fake and not is_training:
            raise OptionError("use_data", config.use_data, "real for evaluation, which fake data never ends")
        if source is None:
            source = (
                fake_source(split)
                if self._is_fake
                else open_data_source(config.data_dir, split, config.file_pattern)
            )
        self.source = source
        self.skip_counter = SkipCounter(self._skips_allowed) if config.on_bad_record == "skip" else None
        self.seed = config.seed if config.seed is not None else random.randrange(2**31)
        self.echo_variable = (
            tf.Variable(1.0, trainable=False, name="echo_factor")
            if is_training and config.is_elastic and config.echoes_examples
            else None
        )

    def __call__(
        self,
        batch_size: int | None = None,
        input_context: tf.distribute.InputContext | None = None,
        start_batch: int = 0,
        start_example: int | None = None,
    ) -> tf.data.Dataset:
        """Returns the dataset that feeds the device.

        Args:
            batch_size: examples a batch over all replicas; None takes the configuration's.
            input_context: which host this is; None for the only one. The batch is divided by the replicas
                that are in sync, and each host reads its share of the shards.
            start_batch: batches to leave out. With `deterministic` and a seed, those that follow are exactly
                the ones of the run from the start, without reading what came before (docs/resume.md).
            start_example: fresh examples to leave out; in its place for an elastic echo of examples.

        Returns:
            Batches `(image, label)`, or dictionaries where the configuration keeps the tags: image
            [batch, size, size, 3] of the configuration's type in [-1, 1], label int32 [batch].

        Raises:
            OptionError: the batch size is no positive integer, or a start does not go with the echo.
            DataError: there are too few records for one batch.
        """
        stages = self.stages(batch_size, input_context, start_batch=start_batch, start_example=start_example)
        if self.is_training and self.config.duplicates_warning:
            warnings.warn(self.config.duplicates_warning, EchoWarning, stacklevel=2)
        return stages(self.first_dataset()).with_options(self.options(input_context))

    def first_dataset(self) -> tf.data.Dataset:
        """Returns what the first stage is applied to: the shards, or the numbers of fake examples."""
        return fake_numbers() if self._is_fake else shards_dataset(self.source.shards)

    def options(self, input_context: tf.distribute.InputContext | None = None) -> tf.data.Options:
        """Returns the tf.data options of the dataset; a prefix of the stages wants the same ones.

        Args:
            input_context: as in `__call__`.
        """
        options = tf.data.Options()
        options.deterministic = self.config.deterministic or not self.is_training
        if self.config.private_threads is not None:
            options.threading.private_threadpool_size = self.config.private_threads
        if self.config.max_intra_op_parallelism is not None:
            options.threading.max_intra_op_parallelism = self.config.max_intra_op_parallelism
        if input_context is not None:
            # Each host reads its share already.
            options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
        return options

    def stages(
        self,
        batch_size: int | None = None,
        input_context: tf.distribute.InputContext | None = None,
        echoed: bool = True,
        start_batch: int = 0,
        start_example: int | None = None,
    ) -> Pipeline:
        """Returns the stages in order, the echo at its insertion point.

        Args:
            batch_size: as in `__call__`, as are the other arguments.
            input_context: which host this is.
            echoed: False leaves the echo out and the other stages as they are composed for it: for measuring
                what stands before and after it. `without_echo` is the best pipeline that has none.
            start_batch: where to begin.
            start_example: where to begin.
        """
        config = self.config
        batch = config.batch_size if batch_size is None else batch_size
        check_integer("batch_size", batch, minimum=1)
        self._check_enough_records(batch)
        hosts, host = 1, 0
        if input_context is not None:
            hosts, host = input_context.num_input_pipelines, input_context.input_pipeline_id
            batch = input_context.get_per_replica_batch_size(batch)

        block = block_examples(config, self.is_training, batch)
        batching = Batch(batch, self._drop_remainder, config.prefetch_examples, block)
        transfer = Transfer(config.dtype, config.prefetch_batches, config.keep_tags, config.layout)
        if self._is_fake:
            fake = FakeData(config.image_size, LABELS, config.dtype, self.seed)
            stages = Pipeline((fake, batching, transfer))
            return self._with_echo(stages) if echoed else stages

        # Storage
        storage = Storage(
            shard_count=len(self.source.shards),
            is_training=self.is_training,
            epochs=config.epochs if self.is_training else 1,
            cycle_length=config.cycle_length,
            read_buffer_bytes=config.read_buffer_bytes,
            # One shuffle buffer: after the echo where examples are echoed, else here (Choi et al., 2019).
            shuffle_buffer_size=0 if echoed and self._shuffles_after_echo else self.example_shuffle_size,
            seed=self.seed,
            deterministic=config.deterministic,
            cache=config.cache != "none",
            cache_path=cache_path(config, self.source, self.seed, hosts, host),
            # Decoded before the cache, and so before the shuffle and the repeat, which stand behind it.
            before_cache=decode_stage(config, self.skip_counter) if config.cache == "images" else None,
            host_count=hosts,
            host_index=host,
            skip_counter=self.skip_counter,
        )

        # Preprocessing
        preprocessing = preprocessing_stages(config, self.is_training, self.seed, self.skip_counter, block)

        stages = Pipeline((storage, *preprocessing, batching, transfer))
        stages = self._with_echo(stages) if echoed else stages
        return started_at(stages, shards_dataset(self.source.shards), start_batch, start_example)

    def steps_in(self, epochs: int = 1, batch_size: int | None = None) -> int | None:
        """Returns the training steps of so many epochs on one host, or None where the records are not known.

        With an elastic factor it is the least number, that without repeats.

        Args:
            epochs: passes over the data.
            batch_size: examples a batch; None takes the configuration's.
        """
        records = self.source.records
        batch = batch_size or self.config.batch_size
        return None if records is None else self._batches(records * epochs, batch)

    @property
    def example_shuffle_size(self) -> int:
        """Examples in the example shuffle buffer, wherever it stands.

        Raises:
            OptionError: a budget in bytes that is too small for one example, or for elements whose size is
                not known.
        """
        config = self.config
        if config.shuffle_buffer_bytes is None:
            return config.shuffle_buffer_size
        point = config.parsed_insert_point if self._shuffles_after_echo else InsertionPoint.AFTER_READ
        size_bytes = example_bytes(point, self.source, config.image_size)
        # The repeats of one example share its memory. An elastic factor counts with 1, where it starts.
        factor = config.parsed_echo_factor if self._shuffles_after_echo else 1
        return elements_for_budget(config.shuffle_buffer_bytes, size_bytes, factor)

    def without_echo(self) -> InputPipeline:
        """Returns the same pipeline with the echo taken out, over the same shards."""
        return InputPipeline(replace(self.config, echo_factor=1), self.is_training, self.source)

    def _batches(self, records: int, batch: int) -> int:
        factor = self.config.parsed_echo_factor
        if self._echoes_examples:
            return self._full_batches(factor.outputs_of(records), batch)
        batches = self._full_batches(records, batch)
        return factor.outputs_of(batches) if self.is_training else batches

    def _full_batches(self, examples: int, batch: int) -> int:
        return examples // batch if self._drop_remainder else -(-examples // batch)

    @property
    def _skips_allowed(self) -> int | None:
        """Skips without one good record that can only mean that there is none."""
        if self.source.records is None:
            return None
        if not self._shuffles_after_echo or self.config.parsed_insert_point is not InsertionPoint.AFTER_READ:
            return self.source.records
        # A good record may wait in the buffer before the decode; e**-20 is its chance to do so for that long.
        return self.source.records + 20 * self.example_shuffle_size

    @property
    def _drop_remainder(self) -> bool:
        return self.is_training if self.config.drop_remainder is None else self.config.drop_remainder

    def _check_enough_records(self, batch: int) -> None:
        records = self.source.records
        if records is None or self._batches(records, batch) > 0:
            return
        echo = f" used {self.config.parsed_echo_factor} times" if self._echoes_examples else ""
        raise DataError(
            f"{records} records{echo}, batch {batch}: no full batch in {self.source.data_dir}. "
            "Give a smaller batch size or more data."
        )

    @property
    def _echoes_examples(self) -> bool:
        return self.is_training and self.config.echoes_examples

    @property
    def _shuffles_after_echo(self) -> bool:
        return self.is_training and self.config.shuffles_after_echo

    def _with_echo(self, stages: Pipeline) -> Pipeline:
        if not self.is_training:
            return stages
        shuffle_size = self.example_shuffle_size if self._shuffles_after_echo else 0
        factor = self.config.parsed_echo_factor if self.echo_variable is None else self.echo_variable
        return insert_echo(stages, self.config, factor, shuffle_size, self.seed)
