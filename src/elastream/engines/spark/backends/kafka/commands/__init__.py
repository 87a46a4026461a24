"""What the records of the journal do to the state.

Whoever wants a change appends a command, and reads on until it comes by: what it came to follows
from the records before it, so everybody comes to the same result, and nobody has to ask. A commit
by somebody who has lost a lane, or whose place another has taken, comes to nothing.
"""

from elastream.engines.spark.backends.kafka.commands import board, ends, lanes, whole
from elastream.engines.spark.backends.kafka.commands.base import Command, apply

__all__ = ["Command", "apply", "board", "ends", "lanes", "whole"]
