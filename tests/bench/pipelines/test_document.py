import json

from bench.pipelines.comparison import Comparison, Measured, Round
from bench.pipelines.document import comparison_document
from bench.pipelines.timing import Timing
from bench.pipelines.variants import Task, Variant


def test_document_holds_every_round_and_no_value_is_null():
    reference = Measured(
        Variant("reference", "slow", "m", "float32", settings=(("cache", "records"),)),
        [Round(200, 2.0, 3.0, 5_000)],
    )
    broken = Measured(Variant("peer", "", "m", "uint8", ("p",), ("no-such-dist",)), [], "it ended")
    comparison = Comparison([reference, broken])
    document = comparison_document(comparison, Task("data", "train", 8, 32, 2), Timing(measured_seconds=2.0))
    json.dumps(document, allow_nan=False)
    assert (document["schema"], document["schema_version"]) == ("pipebench.bench_pipeline", 1)
    assert document["task"] == {
        "data_dir": "data", "split": "train", "batch_size": 8, "image_size": 32, "cores": 2
    }  # fmt: skip
    assert document["timing"]["measured_seconds"] == 2.0
    assert document["environment"]["cpu_cores"] >= 1
    assert document["warnings"] == []
    first, second = document["variants"]
    assert first["settings"] == {"cache": "records"}
    assert first["images_per_second"] == 100.0
    assert first["ratio_to_reference"] == {"median": 1.0, "lowest": 1.0, "highest": 1.0}
    assert first["ratio_to_crop_decode"] is None
    assert first["cpu_seconds_per_image"] == 0.015
    assert first["rounds"] == [
        {"images": 200, "seconds": 2.0, "cpu_seconds": 3.0, "peak_memory_bytes": 5_000}
    ]
    assert first["versions"]["tensorflow"].startswith("2.")
    assert second["versions"] == {"no-such-dist": None}
    assert second["images_per_second"] is None and second["error"] == "it ended"
