"""What the records of the journal do to the state.

To change the state, a process appends a command, and reads the journal until the command comes by.
Its result follows from the records before it, so every reader arrives at the same one, and nobody
has to ask. A commit by a member that has lost a lane, or whose place another has taken, has no
effect.
"""

from elastream.engines.spark.backends.kafka.commands import (
    board,
    dataframes,
    lanes,
    layout,
    ownership,
    restore,
)
from elastream.engines.spark.backends.kafka.commands.base import Command, apply

__all__ = ["Command", "apply", "board", "dataframes", "lanes", "layout", "ownership", "restore"]
