"""The address of a remote model: `https://host:port/v1#model-name`."""

from __future__ import annotations

import importlib
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, quote, unquote, urlsplit

from decodescope.core.common.program_name import NAME
from decodescope.core.errors import AddressError
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from types import ModuleType

_SCHEMES = ("http://", "https://")
_DEFAULT_PATH = "/v1"
_UNSAFE = re.compile(r"[\x00-\x20%\x7f]")
"""Characters of a model's name that an address cannot contain as they are."""


@dataclass(frozen=True, slots=True)
class Address:
    """The address of an engine and one of its models."""

    scheme: str
    host: str
    port: int
    path: str
    """Path of the OpenAI-compatible API, without a trailing slash: `/v1`."""
    model: str = ""
    """Empty if the engine's only model is meant."""

    @property
    def place(self) -> str:
        """Host and port for display: `localhost:8000`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _default_port(self.scheme) else f"{host}:{self.port}"

    @property
    def base(self) -> str:
        """Address without the model; keys are stored under it."""
        return f"{self.scheme}://{self.place}{self.path}"

    @property
    def root(self) -> str:
        """Path of the engine's native API, next to the compatible one."""
        return self.path.removesuffix(_DEFAULT_PATH)

    @property
    def is_here(self) -> bool:
        """Whether it is this machine."""
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        import ipaddress  # not needed at startup

        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        model = _UNSAFE.sub(lambda found: quote(found[0]), self.model)
        return f"{self.base}#{model}" if model else self.base


def is_address(name: str) -> bool:
    """Return whether a model name is an address."""
    return name.lower().startswith(_SCHEMES)


def parse(text: str, allow_plain: bool = False) -> Address:
    """Parse an address; plain http is limited to this machine unless allowed. Raises AddressError."""
    parts, port = _split_url(text.strip())
    if parts.username is not None or parts.password is not None or parts.query:
        raise AddressError(  # may contain a key: do not repeat it
            tr("The address contains a user name, a password or a query, which would be saved with it."),
            tr("Enter the address without them, and the key in its own field."),
        )
    address = Address(
        parts.scheme,
        parts.hostname or "",
        port or _default_port(parts.scheme),
        parts.path.rstrip("/") or _DEFAULT_PATH,
        unquote(parts.fragment),
    )
    if address.scheme == "http" and not address.is_here and not allow_plain:
        raise AddressError(
            tr("{place} is another machine, and prompts and keys sent there over http can be read on the "
                "way."
               ).format(place=address.place),
            tr("Use https, or allow http for this engine if you trust the network."),
        )  # fmt: skip
    return address


def _split_url(text: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    broken = any(ord(char) <= 32 or ord(char) == 127 for char in text)
    if parts.scheme not in ("http", "https") or not parts.hostname or broken:
        raise AddressError(
            tr("This is not a valid engine address."), tr("Write it like https://host:8000/v1#model-name.")
        )
    return parts, port


def _default_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


_OPENAI_VARIABLE, _OWN_VARIABLE = "OPENAI_API_KEY", "DECODESCOPE_API_KEY"
_session_keys: dict[str, str] = {}
"""Keys entered or found since the program started, by the address's base; empty where there is none."""


def find_key(address: Address) -> str:
    """Return the key for an engine; empty if none is known. Keys from the environment are only sent to their machine:
    OPENAI_API_KEY to that of OPENAI_BASE_URL (default: api.openai.com), DECODESCOPE_API_KEY to any other.
    """
    if address.base not in _session_keys:  # read the keyring once: a locked one may prompt for its password each time
        _session_keys[address.base] = _key_from_keyring(address)
    return _session_keys[address.base] or _key_from_environment(address)


def entered_key(address: Address) -> str:
    """Return the key that was entered or found for an engine since the program started; empty without one."""
    return _session_keys.get(address.base, "")


def keep_key(address: Address, key: str, lasting: bool = False) -> bool:
    """Use `key` for this engine; with `lasting`, store it in the system keyring, which may prompt for its password.
    Return False if it could not be stored there; it is then kept until the program ends.
    """
    if not key.strip():
        forget_key(address)
        return True
    _session_keys[address.base] = key.strip()
    ring = _keyring() if lasting else None
    if ring is None:
        return not lasting
    try:
        ring.set_password(NAME, address.base, key.strip())
    except Exception:  # keyring backends raise various errors, which may contain the key
        return False
    return True


def forget_key(address: Address) -> None:
    """Delete the engine's key from memory and from the keyring."""
    ring, _session_keys[address.base] = _keyring(), ""
    if ring is None or not _key_from_keyring(address):
        return
    with suppress(Exception):  # keyring backends raise various errors
        ring.delete_password(NAME, address.base)


def has_keyring() -> bool:
    """Return whether keys can be stored permanently: the package of the extra `keyring` is installed, and this system
    has a usable keyring.
    """
    ring = _keyring()
    try:
        return ring is not None and ring.get_keyring().priority > 0
    except Exception:  # the keyring service has stopped
        return False


def has_keyring_package() -> bool:
    """Return whether the keyring package is installed."""
    return find_spec("keyring") is not None


def _keyring() -> ModuleType | None:
    if not has_keyring_package():
        return None
    module: ModuleType = importlib.import_module("keyring")  # slow: it searches for the system's services
    return module


def _key_from_keyring(address: Address) -> str:
    ring = _keyring()
    if ring is None:
        return ""
    try:
        return ring.get_password(NAME, address.base) or ""
    except Exception:
        return ""


def _key_from_environment(address: Address) -> str:
    try:
        openai = parse(os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1", allow_plain=True).base
    except AddressError:
        openai = ""
    key = os.environ.get(_OPENAI_VARIABLE, "") if address.base == openai else os.environ.get(_OWN_VARIABLE, "")
    return key.strip()
