"""What a process of a lab takes of this machine."""

from __future__ import annotations

import socket

from core.errors import ScaleError
from resources.language import tr

RUNTIME_BYTES = 450_000_000
"""Bytes that a process takes before it holds a model: Python, torch, transformers."""


def free_port(port: int) -> int:
    """A port of this machine that nobody listens on; 0 for any. Raises ScaleError where it is taken."""
    with socket.socket() as tried:
        try:
            tried.bind(("127.0.0.1", port))
        except OSError as error:
            raise ScaleError(
                tr("Port {port} of this machine is taken: {reason}.").format(port=port, reason=error.strerror),
                tr("Choose another, or 0 for any that is free."),
            ) from error
        found: int = tried.getsockname()[1]
        return found
