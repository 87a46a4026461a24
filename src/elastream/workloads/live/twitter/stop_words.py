"""Words that say little."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# Negations, "but" and words of degree stay in the text: the sentiment of a sentence hangs on them.
_STOP_WORDS = """
    a about above after again all also am an and any are as at be because been before being below
    between both by can could did do does doing done during each either for from further get gets
    got had has have having he her here hers herself him himself his how i i'd i'll i'm i've if in
    into is it it's its itself may me might mine more must my myself of off on once one only or
    other our ours ourselves out over own part same shall she should since some such than that
    that's the their theirs them themselves then there there's these they they're this those through
    to too under until up upon us was we we're were what when where whether which while who whom
    whose why will with within would you you're your yours yourself yourselves
    """
_LEAVE_OUT = pa.array([*_STOP_WORDS.split(), ""])
"""Also what is left of nothing but punctuation, and of spaces at the ends."""
_PUNCTUATION = '.,:;!?…"()'


def remove_stop_words(batch: pa.Table) -> pa.Table:
    """Add `content`: the words of `text` that are not stop words."""
    return batch.append_column("content", without_stop_words(batch["text"].combine_chunks()))


def without_stop_words(texts: pa.Array) -> pa.Array:
    """The texts without their stop words.

    >>> without_stop_words(pa.array(["This is not a good idea!"])).to_pylist()
    ['not good idea!']
    """
    lists = pc.utf8_split_whitespace(texts)
    words = lists.flatten()
    bare = pc.utf8_lower(pc.utf8_trim(words, characters=_PUNCTUATION))
    kept = pc.invert(pc.is_in(bare, value_set=_LEAVE_OUT))
    before = np.concatenate([[0], np.cumsum(kept.to_numpy(zero_copy_only=False))])
    offsets = lists.offsets.to_numpy()
    remaining = pa.ListArray.from_arrays(
        pa.array(before[offsets - offsets[:1]].astype(np.int32)), words.filter(kept)
    )
    return pc.binary_join(remaining, " ")
