"""The Speed lab: the ways to lower latency, measured on a model of one's own."""
