"""Every option of the input pipeline, validated on construction."""

from __future__ import annotations

from dataclasses import dataclass

from echoing.checks import check_choice, check_integer, check_number
from echoing.echo_factor import MAX_FACTOR, EchoFactor
from echoing.errors import OptionError
from echoing.insertion_point import InsertionPoint

DTYPES = ("float32", "bfloat16", "uint8")
CACHES = ("none", "records", "images")
PREPROCESSING = ("fused", "inception", "vgg")
LAYOUTS = ("nhwc", "hwcn")
DATA_KINDS = ("real", "fake")
DCT_METHODS = ("", "INTEGER_FAST", "INTEGER_ACCURATE")
MAX_IMAGE_PIXELS = 2 * 89_478_485
"""Pillow's limit against decompression bombs: twice the pixels that fill a quarter of a gigabyte in RGB."""
BAD_RECORD_POLICIES = ("fail", "skip")
ECHO_SHUFFLES = ("auto", "none")

_BEFORE_FAKE_DATA = (InsertionPoint.AFTER_READ, InsertionPoint.AFTER_DECODE)

ELASTIC = "elastic"
"""The echo factor that follows the device's waiting, between 1 and `max_echo_factor`."""


@dataclass(frozen=True)
class PipelineConfig:
    """Options of an `InputPipeline`; defaults are the Cloud TPU Inception v3 reference's where it has one.

    Attributes:
        data_dir: folder of the shards, local or `scheme://`.
        train_split: shard name prefix for training.
        eval_split: shard name prefix for evaluation.
        file_pattern: shell pattern for shard names inside `data_dir`, in place of the split's own; or None.
        batch_size: examples a batch, over all replicas.
        image_size: height and width of the images delivered, pixels (reference: 299).
        dtype: type of the images that go to the device, `float32` or `bfloat16` in [-1, 1], or `uint8`, a
            quarter of the bytes, which the device scales (see `trainer.device_color`).
        layout: `nhwc`, or `hwcn`: batches transposed on the host, which a TPU's infeed takes faster.
        use_data: `real`, or `fake`: one random image for ever, for the rate without reading and decoding.
        epochs: passes over the data; None repeats for ever. Evaluation always makes one pass.
        drop_remainder: leave a smaller last batch out; None does so in training and not in evaluation.
        cycle_length: shards read at the same time (reference flag num_files_infeed: 8).
        read_buffer_bytes: read buffer of each shard (reference flag prefetch_dataset_buffer_size: 8 MiB).
        shuffle_buffer_size: examples in the one example shuffle buffer (reference flag
            followup_shuffle_buffer_size: 1000); 0 leaves it out. It stands after the read, or after the echo
            where examples are echoed.
        num_parallel_calls: parallel decode and augment calls; None lets tf.data choose (the reference: 64).
        prefetch_examples: examples held ready before the batch, and before an echo of examples (the reference
            holds a whole batch of them; measured on two cores, fewer than 16 leave a core idle at times).
        prefetch_batches: batches held ready for the device (reference: 2).
        deterministic: whether the order is reproducible; False reads sloppily, as the reference does.
        seed: seed of every shuffle and of the augmentation; None draws one.
        shuffle_buffer_bytes: memory of the example shuffle buffer, in place of its size in examples; or None.
        batch_shuffle_buffer_size: batches in a shuffle buffer after an echo of batches; 0 leaves it out.
        batch_shuffle_buffer_bytes: memory of that buffer, in place of its size; or None.
        echo_factor: how often each upstream element is used, >= 1, or `elastic`.
        max_echo_factor: upper bound of the elastic factor.
        insert_point: where the echo stands, in either spelling.
        echo_shuffle: `auto` puts the example shuffle after an echo of examples; `none` leaves it after the
            read, so that repeats land side by side.
        preprocess: `fused` decodes only the crop (in training; the same images as `inception`, to rounding),
            `inception` follows the reference step by step, `vgg` is its other preprocessing.
        cb_distortion_range: range of the blue chroma shift (reference: 0.1).
        cr_distortion_range: range of the red chroma shift (reference: 0.1).
        use_fast_color_distort: shift brightness and chroma; False changes brightness and saturation.
        fast_mode: resize bilinearly and leave hue and contrast alone (reference: always on); False draws the
            resize method and, without `use_fast_color_distort`, the ordering of the four colour distortions.
        half_pixel_centers: sample at the centres of pixels, as TensorFlow 2 does (reference: False).
        vgg_reference_scaling: reproduce the reference's `vgg` fault: means of 0..255 taken from 0..1 pixels.
        use_annotated_boxes: crop around the record's boxes where it has any.
        dct_method: of the JPEG decoder, `INTEGER_FAST` or `INTEGER_ACCURATE`; empty for TensorFlow's default.
        fancy_upscaling: interpolate the chroma planes; None for True, but False where `fused` decodes crops
            (0.2 grey levels on average).
        max_image_pixels: images that claim more in their header are bad; read before anything is decoded.
        recover_truncated: use what a truncated image still holds, the rest grey, in place of calling it bad.
        parse_after_batch: parse records a batch at a time; None where it helps.
        private_threads: threads of a pool for this pipeline alone; None shares TensorFlow's.
        max_intra_op_parallelism: threads within one operation; None leaves it to TensorFlow.
        cache: `records` keeps the compressed records after the first pass, `images` the decoded ones.
        cache_dir: folder of the cache's files; empty for memory.
        on_bad_record: `fail`, or `skip` (counted).
        keep_tags: deliver dictionaries with the accounting features instead of `(image, label)`.
        stamp_upstream: record when each fresh element leaves the upstream side; needs `keep_tags`.
    """

    data_dir: str
    train_split: str = "train"
    eval_split: str = "validation"
    file_pattern: str | None = None
    batch_size: int = 1024
    image_size: int = 299
    dtype: str = "float32"
    layout: str = "nhwc"
    use_data: str = "real"
    epochs: int | None = None
    drop_remainder: bool | None = None
    cycle_length: int = 8
    read_buffer_bytes: int = 8 * 1024 * 1024
    shuffle_buffer_size: int = 1000
    shuffle_buffer_bytes: int | None = None
    batch_shuffle_buffer_size: int = 0
    batch_shuffle_buffer_bytes: int | None = None
    num_parallel_calls: int | None = None
    prefetch_examples: int = 64
    prefetch_batches: int = 2
    deterministic: bool = False
    seed: int | None = None
    echo_factor: object = 1
    max_echo_factor: float = 8.0
    insert_point: str | InsertionPoint = InsertionPoint.AFTER_AUGMENT
    echo_shuffle: str = "auto"
    preprocess: str = "fused"
    cb_distortion_range: float = 0.1
    cr_distortion_range: float = 0.1
    use_fast_color_distort: bool = True
    fast_mode: bool = True
    half_pixel_centers: bool = False
    vgg_reference_scaling: bool = False
    use_annotated_boxes: bool = False
    dct_method: str = ""
    fancy_upscaling: bool | None = None
    max_image_pixels: int = MAX_IMAGE_PIXELS
    recover_truncated: bool = False
    parse_after_batch: bool | None = None
    private_threads: int | None = None
    max_intra_op_parallelism: int | None = None
    cache: str = "none"
    cache_dir: str = ""
    on_bad_record: str = "fail"
    keep_tags: bool = False
    stamp_upstream: bool = False

    def __post_init__(self) -> None:
        """Checks every option.

        Raises:
            OptionError: an option has a value that is not allowed.
        """
        if not self.data_dir or not self.data_dir.strip():
            raise OptionError("data_dir", self.data_dir, "the folder of the shards")
        check_integer("batch_size", self.batch_size, minimum=1)
        check_integer("image_size", self.image_size, minimum=1)
        check_choice("dtype", self.dtype, DTYPES)
        check_choice("layout", self.layout, LAYOUTS)
        check_choice("use_data", self.use_data, DATA_KINDS)
        if self.epochs is not None:
            check_integer("epochs", self.epochs, minimum=1)
        check_integer("cycle_length", self.cycle_length, minimum=1)
        check_integer("read_buffer_bytes", self.read_buffer_bytes, minimum=0)
        check_integer("shuffle_buffer_size", self.shuffle_buffer_size, minimum=0)
        if self.shuffle_buffer_bytes is not None:
            check_integer("shuffle_buffer_bytes", self.shuffle_buffer_bytes, minimum=1)
        check_integer("batch_shuffle_buffer_size", self.batch_shuffle_buffer_size, minimum=0)
        check_choice("echo_shuffle", self.echo_shuffle, ECHO_SHUFFLES)
        check_number("max_echo_factor", self.max_echo_factor, minimum=1, maximum=MAX_FACTOR)
        if self.batch_shuffle_buffer_bytes is not None:
            check_integer("batch_shuffle_buffer_bytes", self.batch_shuffle_buffer_bytes, minimum=1)
        if self.num_parallel_calls is not None:
            check_integer("num_parallel_calls", self.num_parallel_calls, minimum=1)
        check_integer("prefetch_examples", self.prefetch_examples, minimum=0)
        check_integer("prefetch_batches", self.prefetch_batches, minimum=0)
        if self.seed is not None:
            check_integer("seed", self.seed, minimum=0, maximum=2**31 - 1)
        check_number("cb_distortion_range", self.cb_distortion_range, minimum=0)
        check_number("cr_distortion_range", self.cr_distortion_range, minimum=0)
        check_choice("preprocess", self.preprocess, PREPROCESSING)
        if self.dtype == "uint8" and self.preprocess == "vgg":
            raise OptionError("dtype", self.dtype, "float32 or bfloat16 for vgg, which subtracts means")
        check_choice("dct_method", self.dct_method, DCT_METHODS)
        check_integer("max_image_pixels", self.max_image_pixels, minimum=1)
        for name in ("private_threads", "max_intra_op_parallelism"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), minimum=1)
        check_choice("cache", self.cache, CACHES)
        if self.cache_dir and self.cache == "none":
            raise OptionError("cache_dir", self.cache_dir, "left out unless there is a cache")
        check_choice("on_bad_record", self.on_bad_record, BAD_RECORD_POLICIES)
        if self.stamp_upstream and not self.keep_tags:
            raise OptionError("stamp_upstream", True, "False unless keep_tags is True")
        self.parsed_echo_factor  # noqa: B018 - parsed for its checks
        if self.use_data == "fake" and self.is_echoed and self.parsed_insert_point in _BEFORE_FAKE_DATA:
            raise OptionError(
                "insert_point",
                self.parsed_insert_point.value,
                "after_augment or later with fake data, which is neither read nor decoded",
            )
        if self.parsed_insert_point.is_on_device and self.is_echoed and not self.keep_tags:
            raise OptionError(
                "insert_point",
                self.parsed_insert_point.value,
                "another point unless keep_tags is True",
                "The trainer serves the repeats on the device; for a loop of your own, apply "
                "`echoing.echo` to the dataset.",
            )

    @property
    def decodes_crops(self) -> bool:
        """Whether decode and augment are one stage, which decodes only the crop.

        Not where whole images are wanted in between: by an echo or a cache of them, or by `inception` and
        `vgg`, which follow the reference step by step.
        """
        point = self.parsed_insert_point
        echo_between = self.is_echoed and point is InsertionPoint.AFTER_DECODE
        return self.preprocess == "fused" and not echo_between and self.cache != "images"

    @property
    def is_elastic(self) -> bool:
        """Whether the factor follows the device's waiting."""
        return self.echo_factor == ELASTIC

    @property
    def is_echoed(self) -> bool:
        """Whether there is an echo."""
        return self.is_elastic or not self.parsed_echo_factor.is_one

    @property
    def parsed_echo_factor(self) -> EchoFactor:
        """The echo factor as an exact number; 1, where it starts, if it is elastic."""
        return EchoFactor.parse(1 if self.is_elastic else self.echo_factor)

    @property
    def parsed_insert_point(self) -> InsertionPoint:
        """The insertion point under its canonical name."""
        return InsertionPoint.parse(self.insert_point)

    @property
    def echoes_examples(self) -> bool:
        """Whether single examples are echoed."""
        return self.is_echoed and not self.parsed_insert_point.echoes_batches

    @property
    def duplicates_warning(self) -> str:
        """What follows from repeats that land side by side in one batch; empty where they do not."""
        buffered = self.shuffle_buffer_bytes is not None or self.shuffle_buffer_size > 1
        if not self.echoes_examples or (self.shuffles_after_echo and buffered):
            return ""
        if self.is_elastic:
            return "No shuffle after the echo: the repeats of an example stand side by side in one batch."
        distinct = self.parsed_echo_factor.distinct_in_batch(self.batch_size)
        duplicates = self.batch_size - distinct
        return (
            f"No shuffle after the echo: a batch of {self.batch_size} holds {distinct:.4g} different "
            f"examples on average and {duplicates:.4g} duplicates of them. Give a shuffle buffer."
        )

    @property
    def shuffles_after_echo(self) -> bool:
        """Whether the example shuffle stands after the echo instead of after the read."""
        return self.echoes_examples and self.echo_shuffle == "auto"
