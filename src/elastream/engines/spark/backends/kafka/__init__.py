"""The backend on a Kafka cluster, for pipelines that outgrow one machine."""

from elastream.engines.spark.backends.kafka.backend import KafkaBackend

__all__ = ["KafkaBackend"]
