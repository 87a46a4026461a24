"""The applications for real: events that look like the real ones, and functions that work on them.

Events are numbered, and everything about an event follows from its number. Functions take and
return pyarrow tables, and keep the columns that they do not know.
"""

from elastream.errors import MissingExtraError

try:
    import pyarrow  # noqa: F401
except ImportError:
    raise MissingExtraError("running an application on real events", "demo") from None
