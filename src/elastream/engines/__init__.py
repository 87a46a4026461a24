"""The bodies that the one brain can drive: Spark, and a simulator in virtual time."""
