"""Templates of plug-ins that the window writes."""
