"""The address of a model on another machine: `https://host:port/v1#model-name`."""

from __future__ import annotations

import importlib
import os
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

from core.common.former_name import FORMER_NAME, NAME, read_variable
from core.errors import AddressError
from resources.language import tr

if TYPE_CHECKING:
    from types import ModuleType

_SCHEMES = ("http://", "https://")
_DEFAULT_PATH = "/v1"


@dataclass(frozen=True, slots=True)
class Address:
    """Where an engine answers, and which of its models is meant."""

    scheme: str
    host: str
    port: int
    path: str
    """Of the OpenAI-compatible face, without a slash at its end: `/v1`."""
    model: str = ""
    """Empty where the engine is to say which it has."""

    @property
    def place(self) -> str:
        """The machine as people name it: `localhost:8000`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _default_port(self.scheme) else f"{host}:{self.port}"

    @property
    def base(self) -> str:
        """Without the model: what a key is kept for."""
        return f"{self.scheme}://{self.place}{self.path}"

    @property
    def root(self) -> str:
        """Path of the engine's own face, which stands beside the compatible one."""
        return self.path.removesuffix(_DEFAULT_PATH)

    @property
    def is_here(self) -> bool:
        """Whether it is this machine."""
        if self.host == "localhost" or self.host.endswith(".localhost"):
            return True
        import ipaddress  # a window that has just begun needs none

        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"{self.base}#{self.model}" if self.model else self.base


def is_address(name: str) -> bool:
    """Whether a model's name is the address of one."""
    return name.lower().startswith(_SCHEMES)


def parse(text: str, allow_plain: bool = False) -> Address:
    """The parts of an address; plain http goes to this machine only, unless allowed. Raises AddressError."""
    parts, port = _split_url(text.strip())
    if parts.username is not None or parts.password is not None or parts.query:
        raise AddressError(  # it may be a key: it is not repeated
            tr("The address holds a name, a password or a query, which would be kept with it."),
            tr("Give the address without them, and the key in its own field."),
        )
    address = Address(
        parts.scheme, parts.hostname or "", port or _default_port(parts.scheme), parts.path.rstrip("/") or _DEFAULT_PATH,
        unquote(parts.fragment),
    )  # fmt: skip
    if address.scheme == "http" and not address.is_here and not allow_plain:
        raise AddressError(
            tr("{place} is another machine, and http sends prompts and keys there for everybody on the way to read."
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
        raise AddressError(tr("This is no address of an engine."), tr("Write it like https://host:8000/v1#model-name."))
    return parts, port


def _default_port(scheme: str) -> int:
    return 443 if scheme == "https" else 80


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
