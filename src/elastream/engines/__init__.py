"""The engines that the control loop can drive: Spark, attached queries, and a simulator."""
