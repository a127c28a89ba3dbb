"""Engines on other machines: models that an address stands for. Importing this opens no connection, needs no torch."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from core.remote.address import Address, is_address, parse
from core.remote.keys import find_key, forget_key, has_keyring, keep_key
from core.remote.kinds import KINDS, Kind

if TYPE_CHECKING:
    from core.remote.probing import Found

__all__ = [
    "KINDS", "Address", "Kind", "find_key", "forget_key", "has_keyring", "is_address", "keep_key", "parse", "probe",
]  # fmt: skip


def probe(address: Address, cancel: threading.Event | None = None) -> Found:
    """Ask an engine what it is (`kind`) and which `models` it has. Raises EngineError."""
    from core.remote import probing  # brings http and ssl

    return probing.probe(address, cancel)
