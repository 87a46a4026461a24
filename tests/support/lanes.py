"""Who has which lanes, and what changed from one assignment to the next."""


def moved(before, after):
    """The lanes that change hands."""
    return [lane for lane, owner in enumerate(before) if after[lane] != owner]


def lanes_of(processes, connection):
    """The lanes that belong to members in these processes."""
    members, lanes = connection.board.members(), connection.ledger.totals().lanes
    return [
        (name, lane)
        for name, states in lanes.items()
        for lane, state in states.items()
        if (name, state.owner) in members and members[name, state.owner].pid in processes
    ]
