"""The address of a model on another machine: `https://host:port/v1#model-name`."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import SplitResult, unquote, urlsplit

from core.errors import AddressError
from resources.language import tr

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
