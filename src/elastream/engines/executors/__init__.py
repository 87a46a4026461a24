"""The executors of a Spark application: ask for them, release them, list them.

`base` is the port, `spark` speaks to Spark's scheduler, `status` reads its status store, and
`fleet` brings the number of executors to what their users want and keeps it there.
"""
