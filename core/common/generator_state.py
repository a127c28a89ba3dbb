"""The state of a random generator as text. Imports no torch."""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib

from decodescope.resources.language import tr

_MAX_BYTES = 2**16
"""Maximum size of a state; torch's generator on the CPU has 5 kB."""


def encode_state(state: bytes) -> str:
    """Return a state, compressed, in base64."""
    return base64.b64encode(zlib.compress(state, 9)).decode()


def decode_state(text: str) -> bytes:
    """Return the bytes of a state. Raises ValueError for other text."""
    try:
        stream = zlib.decompressobj()
        state = stream.decompress(base64.b64decode(text, validate=True), _MAX_BYTES)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(str(error)) from None
    if not stream.eof:
        raise ValueError(tr("the state is incomplete"))
    return state


def state_hash(text: str) -> str:
    """Return a short hash of a state."""
    return hashlib.sha256(decode_state(text)).hexdigest()[:16]
