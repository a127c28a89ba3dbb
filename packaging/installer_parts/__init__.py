"""The steps of `packaging/installer.py` and what packaging/decodescope.spec decides by."""
