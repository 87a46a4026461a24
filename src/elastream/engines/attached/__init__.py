"""The third engine: an existing Structured Streaming query, whose replicas are executors.

`progress` reads what Spark tells of a batch, `record` adds it up, and neither knows Spark; `query`
looks at the query, and `engine` is what the control loop sees. `sharing` lets several queries share
the executors of their application, and `gaps` says when those may go.
"""
