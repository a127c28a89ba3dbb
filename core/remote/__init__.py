"""Engines on other machines: models that an address stands for. Importing this opens no connection, needs no torch."""

from core.remote.address import Address, is_address, parse
from core.remote.keys import find_key, forget_key, has_keyring, keep_key
from core.remote.kinds import KINDS, Kind

__all__ = [
    "KINDS", "Address", "Kind", "find_key", "forget_key", "has_keyring", "is_address", "keep_key", "parse",
]  # fmt: skip
