"""The Spark engine: pools of long-lived replicas, with queues between them."""
