"""Remote engines: models identified by an address. Importing this package opens no connection and does not import
torch.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from core.checks.arguments import check_cancel
from core.remote.address import (
    Address,
    find_key,
    forget_key,
    has_keyring,
    has_keyring_package,
    is_address,
    keep_key,
    parse,
)
from core.remote.engines import EngineKind
from core.remote.engines import registry as KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from core.events import Event
    from core.remote.local_engines import LocalEngine
    from core.remote.remote_model import EngineInfo, RemoteModel
    from core.request import Request

__all__ = [
    "KINDS",
    "Address",
    "EngineKind",
    "LocalEngine",
    "connect",
    "find_key",
    "find_local_engines",
    "forget_key",
    "has_keyring",
    "has_keyring_package",
    "is_address",
    "keep_key",
    "parse",
    "probe",
    "score_stream",
    "stream",
]


def probe(address: Address, cancel: threading.Event | None = None) -> EngineInfo:
    """Identify an engine (`kind`) and list its `models`. Raises EngineError."""
    from core.remote import remote_model  # imports http and ssl

    check_cancel(cancel)
    return remote_model.probe(address, cancel)


def find_local_engines(cancel: threading.Event | None = None) -> tuple[LocalEngine, ...]:
    """Search this computer for running engines with a port of their own (Ollama, LM Studio); takes a few seconds at
    most. Returns those that answer, with their models or the reason why these cannot be listed. Never raises.
    """
    from core.remote import local_engines

    check_cancel(cancel)
    return local_engines.find_local_engines(cancel or threading.Event())


def connect(name: str, *, allow_plain: bool = False) -> RemoteModel:
    """Connect to a model like `core.load` with an address, without torch. Raises EngineError and its subclasses,
    ModelNotFoundError.
    """
    from core.remote import remote_model

    return remote_model.connect(name, allow_plain=allow_plain)


def stream(model: RemoteModel, request: Request, cancel: threading.Event | None = None) -> Iterator[Event]:
    """Stream a run like `core.stream`, without torch. Raises the same errors."""
    from core.remote import remote_run

    check_cancel(cancel)
    return remote_run.stream(model, request, cancel)


def score_stream(
    model: RemoteModel, text: object, top_n: int = 10, cancel: threading.Event | None = None
) -> Iterator[Event]:
    """Score a text like `core.score_stream`, without torch. Raises the same errors."""
    from core.remote import remote_run

    check_cancel(cancel)
    return remote_run.score_stream(model, text, top_n, cancel=cancel)
