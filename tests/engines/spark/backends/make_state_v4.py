"""Writes `state_v4.sql`: a state as elastream left it when its tables had version 4.

    git checkout 031f9f8
    python -m tests.engines.spark.backends.make_state_v4

It keeps what `make_state_v2` has put into it, and needs the package of its time, as that does.
"""

from tests.engines.spark.backends.make_state_v2 import main

if __name__ == "__main__":
    main(4)
