"""Check for new versions: off by default, one address, a signed answer."""
