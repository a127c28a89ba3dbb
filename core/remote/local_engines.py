"""Search this computer for running engines, each at its own port."""

from __future__ import annotations

import ipaddress
import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from decodescope.core.checks.arguments import cancel_event_or_new
from decodescope.core.errors import EngineAccessError, EngineError, EngineUnreachableError
from decodescope.core.remote import engines
from decodescope.core.remote.address import Address, parse
from decodescope.core.remote.client import EngineClient
from decodescope.core.remote.engines.base import EngineKind, EngineListing, EngineModel
from decodescope.core.remote.http_stream import BrokenConnectionError, CancelledError, Timeouts
from decodescope.resources.language import join_sentences, tr

_TIMEOUTS = Timeouts(connect=1.0, first_byte=3.0, between_chunks=3.0, max_attempts=1)
_MAX_SECONDS = 6.0
"""Limit for all requests to one engine, which may send its answer byte by byte."""
_POLL_SECONDS = 0.02
_HERE = "127.0.0.1"
_ALL_INTERFACES = ("0.0.0.0", "::", "")
"""Hosts that a server listens on, to which no client can connect."""


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """An engine that answers on this computer."""

    title: str
    address: Address
    models: tuple[EngineModel, ...] = ()
    problem: str = ""
    """Why its models cannot be listed, with the remedy."""

    def name_of(self, model: EngineModel) -> str:
        """Return the name of a model for `core.load`."""
        return str(replace(self.address, model=model.name))


class _Search:
    """Searches for one kind of engine on a thread of its own."""

    def __init__(self, kind: EngineKind, own_api: Callable[[EngineClient, threading.Event], EngineListing | None]):
        self.kind, self._own_api = kind, own_api
        self.address = local_address(kind)
        self.cancel = threading.Event()
        self.engine: LocalEngine | None = None
        self.thread = threading.Thread(target=self._run, name=f"find-{kind.name}", daemon=True)

    def _run(self) -> None:
        try:
            listing = self._own_api(EngineClient(self.address, _TIMEOUTS, is_search=True), self.cancel)
        except CancelledError:
            return
        except EngineError as error:
            self.engine = self._with_problem(error)
        else:
            if listing is not None:
                self.engine = LocalEngine(self.kind.title, self.address, listing.models)

    def _with_problem(self, error: EngineError) -> LocalEngine | None:
        """Return the engine with the reason; None if nothing listens at its port."""
        inner = error.__cause__
        if isinstance(error, EngineUnreachableError) and isinstance(inner, BrokenConnectionError):
            if not inner.is_after_head and isinstance(inner.error, ConnectionRefusedError):
                return None
        remedy = error.remedy
        if isinstance(error, EngineAccessError):
            remedy = tr("Enter the key under “Connect to an engine…”.")
        return LocalEngine(self.kind.title, self.address, problem=join_sentences(error.cause, remedy))


def find_local_engines(cancel: threading.Event | None = None) -> tuple[LocalEngine, ...]:
    """Search this computer for running engines with a port of their own (Ollama, LM Studio), all at once; takes a few
    seconds at most. Returns those that answer, in the order of their kinds, with their models or the reason why these
    cannot be listed. Never raises.
    """
    cancel = cancel_event_or_new(cancel)
    searches = [_Search(kind, kind.own_api) for kind in engines.registry.values() if kind.local_port and kind.own_api]
    for search in searches:
        search.thread.start()
    end = time.monotonic() + _MAX_SECONDS
    while any(search.thread.is_alive() for search in searches) and time.monotonic() < end:
        if cancel.wait(_POLL_SECONDS):
            break
    found = []
    for search in searches:
        search.cancel.set()
        engine = search.engine
        if engine is None and search.thread.is_alive() and not cancel.is_set():
            problem = tr("{engine} at {place} does not answer completely.")
            engine = LocalEngine(search.kind.title, search.address, problem=problem.format(
                engine=search.kind.title, place=search.address.place
            ))  # fmt: skip
        if engine is not None:
            found.append(engine)
    return tuple(found)


def local_address(kind: EngineKind) -> Address:
    """Return where an engine listens on this computer: as its environment variable says, or at its usual port.

    The variable is read as Ollama does (https://github.com/ollama/ollama/blob/main/envconfig/config.go): in quotes or
    not, with or without scheme, host, port and path.
    """
    usual = Address("http", _HERE, kind.local_port, "/v1")
    configured = os.environ.get(kind.local_variable, "").strip().strip("\"'").strip() if kind.local_variable else ""
    if not configured:
        return usual
    scheme, separator, place = configured.partition("://")
    if not separator:
        scheme, place = "http", configured
    usual_port = _SCHEME_PORTS.get(scheme, kind.local_port) if separator else kind.local_port
    host, port = _split_place(place.partition("/")[0], usual_port)
    try:
        address = parse(f"{scheme}://{host}:{port}", allow_plain=True)
    except EngineError:
        return usual
    here = Address(address.scheme, _HERE if address.host in _ALL_INTERFACES else address.host, port, "/v1")
    return here if here.is_here else usual


_SCHEME_PORTS = {"http": 80, "https": 443}


def _split_place(place: str, usual_port: int) -> tuple[str, int]:
    """Return host, addresses of IPv6 in brackets, and port; the usual port without a valid one."""
    found = re.fullmatch(r"(\[[^\]]*\]|[^:\[\]]*):([^:]*)", place)
    host, port = (found[1], found[2]) if found else (place, "")
    try:
        if ":" in host.strip("[]"):
            host = f"[{ipaddress.ip_address(host.strip('[]'))}]"
    except ValueError:
        pass  # refused as an address
    is_port = port.isascii() and port.isdecimal() and int(port[:6]) <= 65535
    return host or _HERE, int(port) if is_port else usual_port
