"""The speed lab: techniques that lower latency, measured on a chosen model."""
