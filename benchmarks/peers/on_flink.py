"""The four functions on PyFlink: `python on_flink.py PORT NOTES PARALLELISM REST_PORT MODE BUNDLE`.

Set up for low latency as its documentation advises: a short buffer timeout, and either threads
instead of processes for Python functions, or small bundles of events for the processes. The
adaptive scheduler is on, so that the parallelism of the running job can be changed over REST.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyflink.common import Configuration, Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.java_gateway import get_gateway

sys.path.insert(0, str(Path(__file__).parent))
from feed import note, parsed, step


def main(port: int, notes: str, parallelism: int, rest: int, mode: str, bundle: int) -> None:
    """Run the job until it is killed."""
    settings = Configuration()
    for name, value in {
        "python.client.executable": sys.executable,
        "python.executable": sys.executable,
        "python.execution-mode": mode,
        "python.fn-execution.bundle.size": str(bundle),
        "python.fn-execution.bundle.time": str(bundle),
        "execution.buffer-timeout.interval": "1 ms",
        "jobmanager.scheduler": "adaptive",
        "jobmanager.adaptive-scheduler.resource-wait-timeout": "1 s",
        "jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling": "0 s",
        "jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout": "0 s",
        "rest.port": str(rest),
        "rest.bind-port": str(rest),
        "taskmanager.numberOfTaskSlots": str(parallelism),
        "taskmanager.memory.network.fraction": "0.2",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.delay": "100 ms",
    }.items():
        settings.set_string(name, value)
    environment = StreamExecutionEnvironment.get_execution_environment(settings)
    environment.set_parallelism(parallelism)
    lines = environment._j_stream_execution_environment.socketTextStream(
        "127.0.0.1", port, "\n", 99
    )
    kind = Types.TUPLE([Types.LONG(), Types.DOUBLE()])
    stream = DataStream(lines).rebalance().map(parsed, output_type=kind)
    for _ in range(4):
        stream = stream.map(step, output_type=kind)
    done = stream.map(lambda event: note(event, notes), output_type=kind)
    discard = get_gateway().jvm.org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink
    done._j_data_stream.sinkTo(discard())
    environment.execute("peers")


if __name__ == "__main__":
    # Its environment has no `benchmarks`.
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int, help="that events come from")
    parser.add_argument("notes", help="a folder")
    parser.add_argument("parallelism", type=int)
    parser.add_argument("rest", type=int, help="port of the job's manager")
    parser.add_argument("mode", choices=["thread", "process"])
    parser.add_argument("bundle", type=int, help="of at most this many events and milliseconds")
    main(**vars(parser.parse_args()))
