"""DNS queries as a packet capture prints them, made from their numbers.

Most ask for hosts, and some carry data out in the names that they ask for: tunnels. All domains are
below names that are reserved for examples.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elastream.core.hashing import mix
from elastream.workloads.live.generation import Draws, Phrases, in_blocks, numbered, texts_of

_HEADER, _NAME_ENDS, _TYPE_AND_CLASS = 12, 2, 4
"""The bytes of a query besides the characters of its name."""

_KINDS = (
    # What is asked for, the type of record, and how often.
    ("{host}.{domain}", "A", 50),
    ("{domain}", "A", 10),
    ("{host}.{region}.{domain}", "AAAA", 10),
    ("{digest}.{host}.{domain}", "A", 8),
    ("{byte}.{byte_too}.0.10.in-addr.arpa", "PTR", 6),
    ("_{service}._tcp.{host}.{domain}", "SRV", 4),
    ("{host}{byte}._domainkey.{domain}", "TXT", 3),
    ("{domain}", "MX", 4),
    ("{payload}.{channel}", "TXT", 9),
    ("{payload}.{payload_too}.{channel}", "NULL", 4),
    ("{byte}.{payload}.{payload_too}.{channel}", "CNAME", 2),
    ("{piece}.{channel}", "A", 2),
)
_TUNNELS = np.array(["{channel}" in template for template, _, _ in _KINDS])
_WEIGHTS = [weight for _, _, weight in _KINDS]
_TYPES = pa.array([record for _, record, _ in _KINDS])
_PHRASES = Phrases([template for template, _, _ in _KINDS])


def _words(text: str) -> pa.Array:
    return pa.array(text.split())


_HOSTS = _words("www mail api cdn img static login shop news maps docs auth")
_REGIONS = _words("eu-west-1 us-east-2 ap-south-1 eu-north-1")
_SERVICES = _words("ldap sip xmpp-client caldavs kerberos")
_OWNERS = _words("blue green north river stone cloud paper silver open rapid")
_TRADES = _words("harbor foods travel media systems market health games works bank")
_ENDINGS = pa.array(["example", "example.com", "example.net", "example.org", "test"])
_CHANNELS = pa.array(["t.relay.example", "x7.example.net", "ns1.updates.test", "d.example.org"])


@in_blocks
def make_queries(first: int, count: int) -> pa.Table:
    """The queries with the numbers first .. first + count - 1."""
    draws = numbered(first, count)
    kinds = _kinds(draws)
    names = _PHRASES.fill(kinds, _fields(draws))
    fixed = _HEADER + _NAME_ENDS + _TYPE_AND_CLASS
    return pa.table(
        {
            "id": pa.array(draws.numbers.astype(np.int64)),
            "packet": pc.binary_join_element_wise(
                "IP ",
                _address(draws, "client"),
                ".",
                texts_of(1_024 + draws.below("port", 64_000)),
                " > 10.0.0.53.53: ",
                texts_of(draws.below("query id", 65_536)),
                "+ ",
                _TYPES.take(pa.array(kinds)),
                "? ",
                names,
                ". (",
                pc.cast(pc.add(pc.binary_length(names), fixed), pa.string()),
                ")",
                "",
            ),
        }
    )


def tunnels(first: int, count: int) -> NDArray[np.bool_]:
    """Which of these queries are part of a tunnel."""
    return _TUNNELS[_kinds(numbered(first, count))]


def _kinds(draws: Draws) -> NDArray[np.int64]:
    return draws.weighted("kind", _WEIGHTS)


def _fields(draws: Draws) -> dict[str, pa.Array]:
    return {
        "host": draws.one_of("host", _HOSTS),
        "region": draws.one_of("region", _REGIONS),
        "service": draws.one_of("service", _SERVICES),
        "domain": pc.binary_join_element_wise(
            pc.binary_join_element_wise(
                draws.one_of("owner", _OWNERS), draws.one_of("trade", _TRADES), ""
            ),
            draws.one_of("ending", _ENDINGS),
            ".",
        ),
        "channel": draws.one_of("channel", _CHANNELS),
        "byte": texts_of(draws.below("byte", 256)),
        "byte_too": texts_of(draws.below("byte too", 256)),
        # Content networks name their files by short digests, and are no tunnels.
        "digest": random_labels(draws, "digest", "0123456789abcdef", 8, 20),
        "payload": random_labels(draws, "payload", "abcdefghijklmnopqrstuvwxyz234567", 28, 63),
        "payload_too": random_labels(draws, "more", "abcdefghijklmnopqrstuvwxyz234567", 28, 63),
        "piece": random_labels(draws, "piece", "abcdefghijklmnopqrstuvwxyz234567", 14, 26),
    }


def _address(draws: Draws, aspect: str) -> pa.Array:
    numbers = draws.below(aspect, 4_096)
    return pc.binary_join_element_wise(
        "10.0", texts_of(numbers // 256), texts_of(numbers % 256), "."
    )


_LONGEST = 64


def random_labels(
    draws: Draws, aspect: str, alphabet: str, shortest: int, longest: int
) -> pa.Array:
    """One label per number, with `shortest` to `longest` characters of an ASCII alphabet."""
    words = np.arange(_LONGEST // 8, dtype=np.uint64)
    # Every hash gives eight characters.
    noise = mix(draws.hashes(aspect)[:, np.newaxis] + words)
    letters = np.frombuffer(alphabet.encode(), np.uint8)
    characters = letters[noise.view(np.uint8) % len(letters)]
    lengths = shortest + draws.below(f"length of {aspect}", longest - shortest + 1)
    used = np.arange(_LONGEST) < lengths[:, np.newaxis]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.StringArray.from_buffers(
        len(lengths), pa.py_buffer(offsets), pa.py_buffer(characters[used])
    )
