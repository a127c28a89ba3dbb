"""The Scale lab: what a large model takes on each of many devices, and who computes what when."""
