"""The operators of the Twitter application: stop words, sentiment, and the class of the user.

Sentiment is by VADER, a lexicon and rules for the language of social media: C. J. Hutto and
E. Gilbert, "VADER: A parsimonious rule-based model for sentiment analysis of social media text",
ICWSM 2014.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from elastream.errors import MissingExtraError

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


try:
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer
except ImportError:
    raise MissingExtraError("the sentiment of tweets", "demo") from None

CLEAR = 0.05
"""From where on a score is not neutral: the threshold that VADER's authors give."""


def load_lexicon() -> Any:
    """Read the lexicon, once per replica."""
    return SentimentIntensityAnalyzer()


def rate_sentiment(batch: pa.Table, lexicon: Any) -> pa.Table:
    """Add `sentiment`, in [-1, 1], and `mood`: positive, neutral or negative."""
    scores = scores_of(batch, lexicon)
    return batch.append_column("sentiment", pa.array(scores)).append_column(
        "mood", moods_of(scores)
    )


def scores_of(batch: pa.Table, lexicon: Any) -> NDArray[np.float64]:
    """The score of every `content`."""
    texts = batch["content"].to_pylist()
    scores = (lexicon.polarity_scores(text)["compound"] for text in texts)
    return np.fromiter(scores, np.float64, len(texts))


def moods_of(scores: NDArray[np.float64]) -> pa.Array:
    """What the scores stand for."""
    clear = pc.make_struct(pa.array(scores >= CLEAR), pa.array(scores <= -CLEAR))
    return pc.case_when(clear, "positive", "negative", "neutral")


PUBLIC_FOLLOWERS = 100_000
INFLUENTIAL_FOLLOWERS = 10_000
ACTIVE_A_DAY = 10
AUTOMATED_A_DAY = 60
"""More tweets a day than people write."""


def classify_users(batch: pa.Table) -> pa.Table:
    """Add `user_class`: the first of these that fits.

    - `public`: verified, or very many followers;
    - `automated`: writes more than a person does;
    - `influential`: many followers;
    - `active`: writes often;
    - `casual`: all others.
    """
    return batch.append_column("user_class", user_classes(batch))


def user_classes(batch: pa.Table) -> pa.ChunkedArray:
    """The class of every tweet's writer."""
    days = pc.max_element_wise(batch["account_days"], 1)
    a_day = pc.divide(pc.cast(batch["tweets"], pa.float64()), days)
    followers = batch["followers"]
    conditions = pc.make_struct(
        pc.or_(batch["verified"], pc.greater_equal(followers, PUBLIC_FOLLOWERS)),
        pc.greater_equal(a_day, AUTOMATED_A_DAY),
        pc.greater_equal(followers, INFLUENTIAL_FOLLOWERS),
        pc.greater_equal(a_day, ACTIVE_A_DAY),
    )
    return pc.case_when(conditions, "public", "automated", "influential", "active", "casual")
