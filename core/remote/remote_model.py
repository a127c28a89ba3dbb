"""A model on another machine, as `core.load` gives it for an address."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field

from core import caches, strategies
from core.errors import ParameterError
from core.events import ModelIdentity
from core.models.modalities import TEXT, Takes
from core.remote.address import Address, parse
from core.remote.api_keys import keep_key
from core.remote.backends import Kind
from core.remote.client import EngineClient
from core.remote.engine_probe import ServedModel, identify_engine, select_model
from core.remote.http_stream import Timeouts
from core.remote.token_table import TokenTable
from core.remote.validation import cache_unsupported_reason, setting_unsupported_reason, strategy_unsupported_reason
from resources.language import tr


@dataclass(eq=False, slots=True)
class RemoteModel:
    """What is known here of a model that runs elsewhere."""

    client: EngineClient
    kind: Kind
    served: ServedModel
    words: TokenTable = field(default_factory=TokenTable)
    tells: bool = True
    """Whether it tells probabilities; found out with the first run."""
    generates: bool = True
    """Whether it answers on a face of its own; found out with the first run."""
    reads: bool = True
    """Whether it tells the tokens of a prompt; found out with the first run."""

    @property
    def address(self) -> Address:
        """Where it is."""
        return self.client.address

    @property
    def name(self) -> str:
        """As the engine calls it."""
        return self.served.name

    @property
    def place(self) -> str:
        """Its machine: `localhost:8000`."""
        return self.address.place

    @property
    def takes(self) -> Takes:
        """Text: nothing else is sent."""
        return TEXT

    @property
    def context(self) -> int | None:
        """Longest text in tokens; None where the engine does not tell."""
        return self.served.context

    @property
    def vocabulary(self) -> int:
        """Tokens it knows; 0 where the engine does not tell."""
        return self.served.vocabulary

    @property
    def identity(self) -> ModelIdentity:
        """What is known to tell it from others: its name, and the engine."""
        return ModelIdentity(self.name, self.kind.title)

    def refused_strategies(self) -> dict[str, str]:
        """Name → why it cannot be asked for."""
        found = ((name, strategy_unsupported_reason(one, self.kind)) for name, one in strategies.registry.items())
        return {name: reason for name, reason in found if reason}

    def refused_caches(self) -> dict[str, str]:
        """Name → why it cannot be asked for."""
        found = ((name, cache_unsupported_reason(name, self.kind)) for name in caches.registry)
        return {name: reason for name, reason in found if reason}

    def refused_settings(self) -> dict[str, str]:
        """Name → why it has no effect."""
        known = (parameter for one in strategies.registry.values() for parameter in one.parameters)
        found = ((parameter.name, setting_unsupported_reason(parameter, self.kind)) for parameter in known)
        return {name: reason for name, reason in found if reason}

    def spell(self, beginning: object) -> str:
        """Words, or tokens that this engine has told, as the text that was shown for them. Raises ParameterError."""
        items = [*beginning] if isinstance(beginning, Iterable) and not isinstance(beginning, str) else [beginning]
        text, length = self.words.shown_prefix(items)
        for start, shown in ((length, text), (0, "")):
            try:
                return shown + b"".join(self._token_bytes(item) for item in items[start:]).decode()
            except UnicodeDecodeError:
                continue
        raise ParameterError(
            tr("The answer is to begin with a token that is only part of a character, and {engine} takes text.").format(
                engine=self.kind.title
            ),
            tr("Choose a token that completes the character, or give words."),
            "beginning",
        )

    def _token_bytes(self, item: object) -> bytes:
        if isinstance(item, str):
            return item.encode("utf-8", "replace")
        known = self.words.bytes_of(item) if isinstance(item, int) else None
        return known if known is not None else self._known_piece(item).encode("utf-8", "replace")

    def _known_piece(self, number: object) -> str:
        piece = self.words.piece_of(number) if isinstance(number, int) else None
        if piece is None:
            raise ParameterError(
                tr("The answer is to begin with a token that {model} has not told since it was connected.").format(
                    model=self.name
                ),
                tr("Run the text again first, or give words."),
                "beginning",
            )
        return piece


def connect(
    name: str, *, key: str | None = None, allow_plain: bool = False, timeouts: Timeouts | None = None
) -> RemoteModel:
    """The model behind an address; asks the engine what it is. Raises AddressError, ModelNotFoundError and the other
    EngineErrors."""
    address = parse(name, allow_plain)
    if key:
        keep_key(address, key)
    client = EngineClient(address, timeouts)
    found = identify_engine(client, threading.Event())
    return RemoteModel(client, found.kind, select_model(found, address))
