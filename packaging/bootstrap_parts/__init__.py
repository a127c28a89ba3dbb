"""The steps of `packaging/bootstrap.py`, which is run by path and uses the standard library alone."""
