"""Who writes: a class of users by reach, verification and activity."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

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
