"""Export a run as a short script for transformers or for Decodescope."""
