import numpy as np
import pyarrow as pa
import pytest

from elastream.errors import InvalidInputError
from elastream.workloads.live.dns.operators import (
    add_features,
    classify_queries,
    entropies,
    parse_queries,
)
from elastream.workloads.live.dns.traffic import make_queries, tunnels


def query(name, record="A"):
    return f"IP 10.0.1.2.5353 > 10.0.0.53.53: 17+ {record}? {name}. ({len(name) + 18})"


def test_a_query_is_read():
    batch = pa.table({"id": [1], "packet": [query("WWW.example.com", "AAAA")]})
    assert parse_queries(batch).to_pylist() == [
        {
            "id": 1,
            "client": "10.0.1.2",
            "resolver": "10.0.0.53",
            "type": "AAAA",
            "name": "www.example.com",
            "size": 33,
        }
    ]


def test_what_is_no_query_is_named():
    batch = pa.table({"packet": [query("www.example.com"), "ARP, Request who-has 10.0.0.1"]})
    with pytest.raises(InvalidInputError, match=r"'ARP.*' is not a DNS query"):
        parse_queries(batch)


def test_features_of_names():
    names = ["example.com", "www.example.com", "a1b2.cdn.example.com", "localhost"]
    features = add_features(pa.table({"name": names})).drop_columns(["name"]).to_pydict()
    assert features == {
        "name_length": [11, 15, 20, 9],
        "labels": [2, 3, 4, 1],
        "longest_label": [7, 7, 7, 9],
        "entropy": [0.0, 0.0, pytest.approx(np.log2(7)), pytest.approx(np.log2(9) - 4 / 9)],
        "digit_share": [0.0, 0.0, 2 / 7, 0.0],
    }


def test_entropy_of_slices():
    texts = pa.array(["zzz", "ab", "", "aabb", "abcdefgh"])
    assert entropies(texts.slice(1, 4)).tolist() == [1.0, 0.0, 1.0, 3.0]
    assert entropies(texts.slice(2, 0)).tolist() == []


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("www.riverbank.example", "benign"),
        ("17.4.0.10.in-addr.arpa", "benign"),
        ("9f86d081884c.cdn.openmedia.example.net", "benign"),
        ("mzxw6ytboi4gk3tlmrxw4zjanbsxeidxnfwgyidumvxgi3dpmnvs.t.relay.example", "tunnel"),
    ],
)
def test_verdicts(name, verdict):
    batch = classify_queries(add_features(pa.table({"name": [name]})))
    assert batch["verdict"].to_pylist() == [verdict]
    assert 0 <= batch["score"][0].as_py() <= 1


def test_generated_tunnels_are_found_and_little_else():
    # Other events than those that the weights were fitted to.
    batch = classify_queries(add_features(parse_queries(make_queries(0, 10_000))))
    found = np.array(batch["verdict"].to_pylist()) == "tunnel"
    truth = tunnels(0, 10_000)
    assert (found == truth).mean() > 0.985
    assert found[truth].mean() > 0.93
    assert found[~truth].mean() < 0.005


def test_sizes_are_those_of_the_packets():
    batch = parse_queries(make_queries(0, 200)).to_pylist()
    # A name travels as labels with a length each, and ends with an empty one.
    assert all(e["size"] == 12 + len(e["name"]) + 2 + 4 for e in batch)
    assert all(len(label) <= 63 for e in batch for label in e["name"].split("."))
