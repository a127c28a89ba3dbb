"""The scale lab: memory per device, parallelism and pipeline schedules of a large model."""
