"""Keys of engines: in the system's keyring where there is one, else in memory until the program ends; never written
to a file, a run, a log or an error by us."""

from __future__ import annotations

import importlib
import os
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING

from core.errors import AddressError
from core.former_name import FORMER_NAME, NAME, read_variable
from core.remote.address import Address, parse

if TYPE_CHECKING:
    from types import ModuleType

_SERVICES = (NAME, FORMER_NAME)
"""Names in the system's keyring that are read; the first one is written."""
_OPENAI_VARIABLE, _OWN_VARIABLE = "OPENAI_API_KEY", "DECODESCOPE_API_KEY"
_session_keys: dict[str, str] = {}
"""Keys that were given or found since the program began, by the address's base; empty where there is none."""


def find_key(address: Address) -> str:
    """The key for an engine; empty where none is known. A key from the environment goes to the machine it is for:
    OPENAI_API_KEY to that of OPENAI_BASE_URL (else api.openai.com), DECODESCOPE_API_KEY to any other."""
    if address.base not in _session_keys:  # the keyring is asked once: a locked one may want its password each time
        _session_keys[address.base] = _key_from_keyring(address)
    return _session_keys[address.base] or _key_from_environment(address)


def keep_key(address: Address, key: str, lasting: bool = False) -> bool:
    """Use `key` for this engine from now on; `lasting`: in the system's keyring, whose system may ask for its password
    meanwhile. False where it cannot be kept there: then it is known until the program ends."""
    if not key.strip():
        forget_key(address)
        return True
    _session_keys[address.base] = key.strip()
    ring = _keyring() if lasting else None
    if ring is None:
        return not lasting
    try:
        ring.set_password(_SERVICES[0], address.base, key.strip())
    except Exception:  # every system's keyring fails in its own way, and may say the key
        return False
    return True


def forget_key(address: Address) -> None:
    """Know none for this engine any more, in memory and in the keyring."""
    ring, _session_keys[address.base] = _keyring(), ""
    if ring is None or not _key_from_keyring(address):
        return
    for service in _SERVICES:
        with suppress(Exception):  # the entry under the other name need not exist
            ring.delete_password(service, address.base)


def has_keyring() -> bool:
    """Whether keys can outlast the program: the package of the extra `keyring` is there, and this system has a keyring
    that it can use."""
    ring = _keyring()
    try:
        return ring is not None and ring.get_keyring().priority > 0
    except Exception:  # its service has gone
        return False


def has_keyring_package() -> bool:
    """Whether the package is there, whatever the system has."""
    return find_spec("keyring") is not None


def _keyring() -> ModuleType | None:
    if not has_keyring_package():
        return None
    module: ModuleType = importlib.import_module("keyring")  # slow: it looks for the system's services
    return module


def _key_from_keyring(address: Address) -> str:
    ring = _keyring()
    if ring is None:
        return ""
    try:
        return next((key for name in _SERVICES if (key := ring.get_password(name, address.base))), "")
    except Exception:
        return ""


def _key_from_environment(address: Address) -> str:
    try:
        openai = parse(os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1", allow_plain=True).base
    except AddressError:
        openai = ""
    key = os.environ.get(_OPENAI_VARIABLE, "") if address.base == openai else read_variable(_OWN_VARIABLE)
    return key.strip()
