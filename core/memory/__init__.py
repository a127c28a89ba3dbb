"""Memory estimate of a run, and recovery when memory runs out."""
