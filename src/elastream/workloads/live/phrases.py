"""Texts from templates, for whole batches at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Formatter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


class Phrases:
    """Templates with named fields; every event picks a template and brings the fields' values.

    >>> phrases = Phrases(["{user} logged in", "disk {disk} of {user} is full"])
    >>> fields = {"user": pa.array(["ann", "bob"]), "disk": pa.array(["sda", "sdb"])}
    >>> phrases.fill(np.array([0, 1]), fields).to_pylist()
    ['ann logged in', 'disk sdb of bob is full']
    """

    def __init__(self, templates: Sequence[str]) -> None:
        parts = [
            [(literal, field) for literal, field, _, _ in Formatter().parse(template)]
            for template in templates
        ]
        self._fields = sorted({field for part in parts for _, field in part if field})
        # A template is literal, field, literal, field, ...: the short ones end with nothing.
        longest = max(len(part) for part in parts)
        padded = [part + [("", None)] * (longest - len(part)) for part in parts]
        codes = {field: code for code, field in enumerate(self._fields, start=1)}
        self._literals = [pa.array([part[k][0] for part in padded]) for k in range(longest)]
        self._codes = [
            np.array([codes.get(part[k][1] or "", 0) for part in padded]) for k in range(longest)
        ]

    def fill(self, which: NDArray[np.int64], fields: Mapping[str, pa.Array]) -> pa.Array:
        """One text per event: template number `which`, with the event's own values."""
        values = [fields[field] for field in self._fields]
        pieces = []
        for literals, codes in zip(self._literals, self._codes, strict=True):
            pieces.append(literals.take(pa.array(which)))
            pieces.append(pc.choose(pa.array(codes[which]), "", *values))
        return pc.binary_join_element_wise(*pieces, "")
