"""Native kernels for the decode step, compiled on this computer. Does not import torch."""
