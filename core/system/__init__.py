"""Operating system, installed packages, files, and the memory of devices."""
