"""The address where new versions are announced, and the content of a signed notice.

A notice is one JSON file, `{"notice": BASE64, "signature": BASE64}`. The signature is that of the decoded notice by
Ed25519 (RFC 8032). The notice is JSON too: `{"program": "decodescope", "version": "1.0.1", "page": "https://…"}`.
`packaging/update_notice.py` writes it.
"""

from __future__ import annotations

import base64
import binascii
import json
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from decodescope import resources
from decodescope.resources.language import tr

PROGRAM = "decodescope"
KEY_BYTES = 32
MAX_VERSION_LENGTH, MAX_PAGE_LENGTH = 40, 400
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class UpdateError(Exception):
    """A check that gave no answer, or none that can be trusted; `is_suspicious` if it is not what the makers signed."""

    def __init__(self, cause: str, is_suspicious: bool = False) -> None:
        super().__init__(cause)
        self.cause, self.is_suspicious = cause, is_suspicious


class UpdateSource(NamedTuple):
    """The address of the notice, and the Ed25519 public key of those who publish the program."""

    address: str
    public_key: bytes


class ReleaseNotice(NamedTuple):
    """The newest version, and the page where it can be downloaded."""

    version: str
    page: str


def read_source(path: Path | None = None) -> UpdateSource | None:
    """Return the source that this copy of the program was built with; None if it has none or an invalid one."""
    import tomllib  # rarely needed

    try:
        table = tomllib.loads((path or resources.path("updates.toml")).read_text(encoding="utf-8"))
        address, key = table["address"], base64.b64decode(table["public_key"], validate=True)
    except (OSError, ValueError, KeyError, TypeError, binascii.Error):
        return None
    if not is_allowed_address(address) or len(key) != KEY_BYTES:
        return None
    return UpdateSource(address, key)


def is_allowed_address(address: object) -> bool:
    """Return whether an address is encrypted, or on this computer."""
    if not isinstance(address, str) or len(address) > MAX_PAGE_LENGTH:
        return False
    try:
        parts = urlsplit(address)
        host = parts.hostname
    except ValueError:
        return False
    return bool(host) and (parts.scheme == "https" or (parts.scheme == "http" and host in LOOPBACK))


def why_unavailable(source: UpdateSource | None) -> str:
    """Return why new versions cannot be checked for; empty if they can. Imports nothing."""
    if source is None:
        return tr("This copy of the program has no address where new versions are announced.")
    if find_spec("cryptography") is None:
        return tr("The package {package} is not installed; install it with {command}.").format(
            package="cryptography", command="pip install cryptography"
        )
    return ""


def describe_source() -> tuple[str, str]:
    """Return the address where new versions are announced, and why it cannot be used; both may be empty."""
    source = read_source()
    return (source.address if source is not None else "", why_unavailable(source))


def verify_notice(document: bytes, public_key: bytes) -> ReleaseNotice:
    """Return the notice in a document. Raises UpdateError unless the owner of the key has signed it."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        outer = json.loads(document)
        content = base64.b64decode(outer["notice"], validate=True)
        signature = base64.b64decode(outer["signature"], validate=True)
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, content)
    except InvalidSignature:
        raise UpdateError(tr("Its signature is not that of the program's makers."), is_suspicious=True) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UpdateError(tr("It is not a notice of a release."), is_suspicious=True) from None
    try:
        inner = json.loads(content)
        program, version, page = inner["program"], inner["version"], inner["page"]
    except (ValueError, KeyError, TypeError, RecursionError):
        program = version = page = None
    has_version = isinstance(version, str) and 0 < len(version) <= MAX_VERSION_LENGTH
    if program != PROGRAM or not has_version or not is_allowed_address(page):
        raise UpdateError(tr("It is not a notice of a release."), is_suspicious=True)
    return ReleaseNotice(version, page)


def is_newer(version: str, own: str) -> bool:
    """Return whether a version follows the program's own, whose text may continue, as in “1.0 (from source)”."""
    from packaging.version import InvalidVersion, Version

    try:
        return Version(version) > Version(own.split(" ")[0])
    except (InvalidVersion, IndexError):
        return False
