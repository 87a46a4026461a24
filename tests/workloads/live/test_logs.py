import pyarrow as pa
import pytest

from elastream.workloads.live.logs.lines import make_lines
from elastream.workloads.live.logs.operators import (
    FORMATS,
    find_templates,
    parse_lines,
    rate_severity,
    templates_of,
)

SYSLOG = "Mar  3 06:00:00 web-01 sshd[17]: Failed password for root from 10.20.0.7 port 5022 ssh2"
HDFS = "250303 060000 12 WARN dfs.DataNode$DataXceiver: slow read of blk_-12, 7 ms"
WEB = '10.20.0.7 - - [03/Mar/2025:06:00:00 +0000] "GET /cart/7 HTTP/1.1" 503 12 "-" "browser/5.0"'


def fields(line):
    (event,) = parse_lines(pa.table({"line": [line]})).to_pylist()
    return {name: value for name, value in event.items() if value is not None}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            SYSLOG,
            {
                "format": "syslog",
                "time": "Mar  3 06:00:00",
                "host": "web-01",
                "component": "sshd",
                "message": "Failed password for root from 10.20.0.7 port 5022 ssh2",
            },
        ),
        (
            HDFS,
            {
                "format": "hdfs",
                "time": "250303 060000",
                "component": "dfs.DataNode$DataXceiver",
                "level": "WARN",
                "message": "slow read of blk_-12, 7 ms",
            },
        ),
        (
            WEB,
            {
                "format": "web",
                "time": "03/Mar/2025:06:00:00 +0000",
                "host": "10.20.0.7",
                "status": "503",
                "message": "GET /cart/7 HTTP/1.1",
            },
        ),
        ("hello", {"format": "unknown", "message": "hello"}),
    ],
)
def test_lines_are_read(line, expected):
    assert fields(line) == expected


@pytest.mark.parametrize(
    ("message", "template"),
    [
        ("Received block blk_-1 of size 12 from /10.0.0.7", "Received block <block> of size "
         "<number> from <address>"),
        ("src: /10.0.0.7:5 dest: /10.0.0.8:50010", "src: <address> dest: <address>"),
        ("GET /cart/17 HTTP/1.1", "GET /cart/<number> HTTP/<version>"),
        ("Failed password for guest from 10.0.0.7 port 9 ssh2", "Failed password for <user> from "
         "<address> port <number> ssh2"),
        ("Started session 4 of user www-data.", "Started session <number> of user <user>."),
        ("job 123e4567-e89b-12d3-a456-426614174000 at 0xfe", "job <id> at <id>"),
        ("eth0: link up", "eth0: link up"),
    ],
)  # fmt: skip
def test_templates(message, template):
    assert templates_of(pa.array([message])).to_pylist() == [template]


def severity(**event):
    known = {"level": None, "status": None, "message": ""} | event
    batch = pa.table({name: pa.array([value], pa.string()) for name, value in known.items()})
    return rate_severity(batch)["severity"][0].as_py()


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"level": "FATAL"}, "critical"),
        ({"level": "ERROR"}, "error"),
        ({"level": "WARN"}, "warning"),
        ({"level": "TRACE"}, "debug"),
        ({"level": "INFO", "message": "no error found"}, "info"),
        ({"status": "503"}, "error"),
        ({"status": "404"}, "warning"),
        ({"status": "200", "message": "GET /error"}, "info"),
        ({"message": "Out of memory: Killed process 1"}, "critical"),
        ({"message": "status=1/FAILURE"}, "error"),
        ({"message": "warning: clock is off"}, "warning"),
        ({"message": "link up"}, "info"),
    ],
)
def test_severity(event, expected):
    assert severity(**event) == expected


def test_every_generated_line_is_read_and_few_templates_are_left():
    batch = find_templates(parse_lines(make_lines(0, 2_000)))
    assert set(batch["format"].to_pylist()) == set(FORMATS)
    assert 15 < len(batch["template"].unique()) < 40
