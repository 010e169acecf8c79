"""Data echoing behind the tf.data service: remote workers read, the trainer's host echoes.

Run it with `python examples/tf_data_service.py`. It starts a dispatcher and a worker in this process; give
`--service grpc://host:port` for yours.
"""

from __future__ import annotations

import argparse

import tensorflow as tf

from echoing import MeasuredEcho

service = tf.data.experimental.service


def main() -> None:
    """Reads through the service and counts what is fresh."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--service", help="address of a dispatcher")
    parser.add_argument("--records", type=int, default=200)
    arguments = parser.parse_args()

    address = arguments.service
    if address is None:
        dispatcher = service.DispatchServer()
        worker = service.WorkerServer(
            service.WorkerConfig(dispatcher_address=dispatcher.target.split("://")[1])
        )
        address = dispatcher.target

    measured = MeasuredEcho(2, shuffle_buffer_size=100, seed=1, records=arguments.records)
    dataset = (
        tf.data.Dataset.range(arguments.records)
        # What comes before `distribute` runs on the workers.
        .apply(service.distribute("distributed_epoch", address))
        # The echo comes after it: a repeat costs the network nothing, and no lost worker breaks a group.
        .apply(measured.echo)
        .batch(20)
        .prefetch(2)
        .apply(measured.measure)
    )
    for _ in dataset:
        measured.on_step()
    report = measured.report()
    print(f"trained {report.trained}, fresh {report.fresh}, effective epochs {report.effective_epochs}")
    if arguments.service is None:
        del worker


if __name__ == "__main__":
    main()
