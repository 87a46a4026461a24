"""The operators of the DNS application: parse queries, measure their names, find tunnels.

The last two labels of a name belong to whoever registered the domain. What is sent through a
tunnel is in front of them, so entropy and digits are those of the front.

Tunnel or not is a logistic score of three features. Its weights were fitted by logistic regression
to the 20,000 generated queries from number 1,000,000 on, and rounded. Long labels of high entropy
speak for a tunnel. Many digits speak against one: addresses and the digests of content networks
are full of them, the alphabets of tunnels are not.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elastream.errors import InvalidInputError

_QUERY = (
    r"^IP (?P<client>\d+\.\d+\.\d+\.\d+)\.\d+ > (?P<resolver>\d+\.\d+\.\d+\.\d+)\.53: "
    r"\d+[+%]* (?P<type>[A-Z]+)\? (?P<name>\S+)\. \((?P<size>\d+)\)$"
)


def parse_queries(batch: pa.Table) -> pa.Table:
    """Put `client`, `resolver`, `type`, `name` and `size` in the place of `packet`."""
    packets = batch["packet"].combine_chunks()
    fields = pc.extract_regex(packets, _QUERY)
    if fields.null_count:
        unreadable = packets.filter(pc.is_null(fields))[0]
        raise InvalidInputError(
            f"the packet {unreadable.as_py()!r} is not a DNS query: it must read "
            "'IP <client>.<port> > <resolver>.53: <id>+ <type>? <name>. (<bytes>)'"
        )
    parsed = batch.drop_columns(["packet"])
    for name in ("client", "resolver", "type"):
        parsed = parsed.append_column(name, fields.field(name))
    # The case of a name means nothing: resolvers may vary it at random.
    parsed = parsed.append_column("name", pc.utf8_lower(fields.field("name")))
    return parsed.append_column("size", pc.cast(fields.field("size"), pa.int64()))


_ASCII = 128
_REGISTERED = r"(?:^|\.)[^.]+\.[^.]+$"


def add_features(batch: pa.Table) -> pa.Table:
    """Add `name_length`, `labels`, `longest_label`, `entropy` (bits) and `digit_share`."""
    names = batch["name"].combine_chunks()
    front = pc.replace_substring(pc.replace_substring_regex(names, _REGISTERED, ""), ".", "")
    digits = pc.count_substring_regex(front, "[0-9]").to_numpy(zero_copy_only=False)
    lengths = pc.binary_length(front).to_numpy(zero_copy_only=False)
    labels = pc.split_pattern(names, ".")
    features = {
        "name_length": pc.cast(pc.binary_length(names), pa.int64()),
        "labels": pc.cast(pc.list_value_length(labels), pa.int64()),
        "longest_label": pa.array(_longest(labels)),
        "entropy": pa.array(entropies(front)),
        "digit_share": pa.array(digits / np.maximum(lengths, 1)),
    }
    for name, values in features.items():
        batch = batch.append_column(name, values)
    return batch


def entropies(texts: pa.Array) -> NDArray[np.float64]:
    """Shannon's entropy of the characters of each text, in bits per character.

    >>> entropies(pa.array(["aaaa", "abab", "abcd", ""])).tolist()
    [0.0, 1.0, 2.0, 0.0]
    """
    lengths = pc.binary_length(texts).to_numpy(zero_copy_only=False).astype(np.int64)
    _, offsets, data = texts.buffers()
    start = np.frombuffer(offsets, np.int32)[texts.offset] if len(texts) else 0
    characters = np.frombuffer(data or b"", np.uint8)[start : start + lengths.sum()]
    # A pair of text and character is one number: counting numbers is quick. DNS names are ASCII.
    pairs = np.repeat(np.arange(len(texts)) * _ASCII, lengths) + characters % _ASCII
    counts = np.bincount(pairs, minlength=len(texts) * _ASCII).reshape(-1, _ASCII)
    known = np.arange(max(lengths.max(initial=0), 1) + 1)
    sums = (known * np.log2(np.maximum(known, 1)))[counts].sum(axis=1)
    length = np.maximum(lengths, 1)
    bits: NDArray[np.float64] = np.log2(length) - sums / length
    return bits


def _longest(labels: pa.ListArray) -> NDArray[np.int64]:
    """The length of the longest label of every name; every name has one label at least."""
    lengths = pc.binary_length(labels.flatten()).to_numpy(zero_copy_only=False)
    offsets = labels.offsets.to_numpy()
    if not len(labels):
        return np.zeros(0, np.int64)
    return np.maximum.reduceat(lengths, offsets[:-1] - offsets[0]).astype(np.int64)


WEIGHTS = {"longest_label": 0.83, "entropy": 0.53, "digit_share": -7.2}
BIAS = -16.2
THRESHOLD = 0.5


def classify_queries(batch: pa.Table) -> pa.Table:
    """Add `score`, in [0, 1], and `verdict`: tunnel or benign."""
    evidence = BIAS + sum(weight * batch[name].to_numpy() for name, weight in WEIGHTS.items())
    scores = pa.array(1 / (1 + np.exp(-evidence)))
    verdicts = pc.if_else(pc.greater_equal(scores, THRESHOLD), "tunnel", "benign")
    return batch.append_column("score", scores).append_column("verdict", verdicts)
