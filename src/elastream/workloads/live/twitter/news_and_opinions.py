"""The operators A to H of the application that looks at news and opinions (PA-SPS figure 11).

Shares decide which tweets take which way, so every operator can work on every tweet. From B on all
tweets have the same columns, since ways that part meet again; what lies on a way that a tweet did
not take stays empty.

| operator | what it does |
| --- | --- |
| A | `content`: the text without links, mentions and stop words |
| B | `kind`: news or opinion |
| C | `user_class`: who says it |
| D | `reach`: how far it goes, from 0 to 1 |
| F | `sentiment` and `mood` |
| H | `emphasis`: how loud it is, from 0 to 1; a closer look at one tweet in ten |
| G | `stance`: for, against or undecided; loud tweets take sides sooner |
| E | store |
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from elastream.workloads.live.twitter.operators import (
    moods_of,
    scores_of,
    user_classes,
    without_stop_words,
)

LATER_COLUMNS = {
    "user_class": pa.string(),
    "reach": pa.float64(),
    "sentiment": pa.float64(),
    "mood": pa.string(),
    "emphasis": pa.float64(),
    "stance": pa.string(),
}
_LINKS_AND_MENTIONS = r"https?://\S+|@\w+"
_REPORTING = r"(?i)^(?:breaking|update)\b|\b(?:reports that|according to|says the|officials)\b"
_WIDEST_REACH = 6.0
"""log10 of the followers that count as everybody."""
_LOUDEST = 4
"""Exclamation marks, shouted words and emoji that make a tweet as loud as can be."""
_SIDE, _LOUD_SIDE = 0.4, 0.2
"""The sentiment from which on a tweet takes sides: a quiet one, and one that is loud."""
_LOUD = 0.5


def clean(batch: pa.Table) -> pa.Table:
    """A: add `content`."""
    plain = pc.replace_substring_regex(batch["text"], _LINKS_AND_MENTIONS, "")
    return batch.append_column("content", without_stop_words(plain.combine_chunks()))


def prepare(batch: pa.Table) -> pa.Table:
    """A and B in one, for applications that have a single operator for both."""
    return sort_by_kind(clean(batch))


def sort_by_kind(batch: pa.Table) -> pa.Table:
    """B: add `kind`, and the columns that later operators fill. News has a link and a report."""
    linked = pc.match_substring(batch["text"], "://")
    reporting = pc.match_substring_regex(batch["text"], _REPORTING)
    sorted_batch = batch.append_column(
        "kind", pc.if_else(pc.and_(linked, reporting), "news", "opinion")
    )
    for name, kind in LATER_COLUMNS.items():
        sorted_batch = sorted_batch.append_column(name, pa.nulls(len(batch), kind))
    return sorted_batch


def classify_source(batch: pa.Table) -> pa.Table:
    """C: fill `user_class`."""
    return _filled(batch, "user_class", user_classes(batch))


def estimate_reach(batch: pa.Table) -> pa.Table:
    """D: fill `reach`."""
    width = pc.log10(pc.add(pc.cast(batch["followers"], pa.float64()), 1.0))
    return _filled(batch, "reach", pc.min_element_wise(pc.divide(width, _WIDEST_REACH), 1.0))


def rate_opinion(batch: pa.Table, lexicon: Any) -> pa.Table:
    """F: fill `sentiment` and `mood`."""
    scores = scores_of(batch, lexicon)
    return _filled(_filled(batch, "sentiment", pa.array(scores)), "mood", moods_of(scores))


def rate_emphasis(batch: pa.Table) -> pa.Table:
    """H: fill `emphasis`."""
    loud = pc.count_substring_regex(batch["text"], r"!|\b[A-Z]{3,}\b|\p{So}")
    return _filled(batch, "emphasis", pc.min_element_wise(pc.divide(loud, float(_LOUDEST)), 1.0))


def find_stance(batch: pa.Table) -> pa.Table:
    """G: fill `stance`."""
    loud = pc.greater_equal(pc.fill_null(batch["emphasis"], 0.0), _LOUD)
    side = pc.if_else(loud, _LOUD_SIDE, _SIDE)
    sentiment = pc.fill_null(batch["sentiment"], 0.0)
    conditions = pc.make_struct(
        pc.greater_equal(sentiment, side), pc.less_equal(sentiment, pc.negate(side))
    )
    return _filled(batch, "stance", pc.case_when(conditions, "for", "against", "undecided"))


def _filled(batch: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    return batch.set_column(batch.schema.get_field_index(name), name, values)
