"""What events cost that travel between operators through a real Kafka broker."""
