"""The pure core: no Spark, no I/O, no clock. The same code decides for every engine."""
