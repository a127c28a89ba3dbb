"""A kind of engine: its capabilities, and all the ways in which it differs from other engines."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from decodescope.core.parameter import Settings
    from decodescope.core.remote.address import Address
    from decodescope.core.remote.client import EngineClient
    from decodescope.core.remote.responses import ResponseUsage, TextDelta, TokenTable

Body = dict[str, object]
"""Fields of a request."""
GrammarFormat = Callable[[Any], Body]
"""(content of a grammar) → the request fields for it."""
Message = Mapping[str, Any]
"""A message of an engine: a JSON object."""
UsageReader = Callable[["ResponseUsage", Message], None]
"""Adds the statistics in a message to those of the run."""


class ConnectedModel(Protocol):
    """The parts of a remote model that an engine's own functions use."""

    client: EngineClient
    words: TokenTable

    @property
    def address(self) -> Address: ...
    @property
    def name(self) -> str: ...


class NativeReader(Protocol):
    """Reads the messages of one run on a native endpoint. Created with the engine's host and port."""

    def __init__(self, machine: str) -> None: ...

    @staticmethod
    def is_response(message: Mapping[str, object]) -> bool:
        """Return whether a message comes from the native endpoint."""

    def delta(self, message: Message) -> TextDelta:
        """Return what a message adds. Raises EngineCutError if the engine aborted the text."""


@dataclass(frozen=True, slots=True)
class NativeEndpoint:
    """An endpoint that reports more than the OpenAI-compatible one."""

    path: str
    build_body: Callable[[Message, bool, int], Body]
    """(body of the compatible request, whether it samples, number of alternatives) → the equivalent native body."""
    reader: type[NativeReader]
    chat_path: str = ""
    """Path for chats; empty if chats use the compatible endpoint, which applies the model's template."""
    is_required: bool = False
    """Whether the compatible endpoint is no substitute, because it changes the prompt or ignores settings."""
    has_json_lines: bool = False
    """Whether each message is a line of JSON, not a server-sent event."""


@dataclass(frozen=True, slots=True)
class EngineModel:
    """One model served by an engine."""

    name: str
    context: int | None = None
    """Context length in tokens; None if the engine does not report it."""
    vocabulary_size: int = 0
    """Vocabulary size; 0 if the engine does not report it."""
    facts: tuple[str, ...] = ()
    """Family, number of parameters, format of the weights and size, as far as the engine reports them."""
    host: str = ""
    """The machine to which the engine forwards prompts; empty if it runs the model itself."""


@dataclass(frozen=True, slots=True)
class EngineListing:
    """The models and capabilities that an engine reports through its own API."""

    models: tuple[EngineModel, ...]
    reports_probabilities: bool = True
    """Whether this version of the engine reports probabilities."""


@dataclass(frozen=True, slots=True)
class EngineTokenizer:
    """A tokenizer API: `/tokenize` and `/detokenize`."""

    text_field: str
    """Field of a `/detokenize` response that contains the text."""
    build_body: Callable[[str, str | None, object], Body]
    """(model name, prompt, messages) → body of a `/tokenize` request; the prompt is None for a chat."""
    chat_text: Callable[[ConnectedModel, EngineClient, object, threading.Event], str] | None = None
    """Returns the text of a chat, which is then tokenized; None if the engine tokenizes messages itself."""


class TokenRecovery(Protocol):
    """Recovers tokens that an engine generates without reporting them, message by message."""

    missing_count: int
    """Number of tokens whose ids are unknown."""

    def fill_gap(self, part: TextDelta, decoded: int | None) -> TextDelta:
        """Return `part` with the missing tokens before it. `decoded` is the number of tokens in the answer after it."""

    def remaining_text(self, part: TextDelta) -> str:
        """Return text that the engine still holds back at the end of the answer."""


@dataclass(frozen=True, slots=True)
class EngineKind:
    """A kind of engine; one per file of `core/remote/engines/`. Taken from the engines' sources; undocumented features
    are not used.
    """

    name: str
    title: str
    settings: Mapping[str, str]
    """Supported settings: our name → its name."""
    extras: Mapping[str, object] = field(default_factory=dict)
    """Fields sent with every request."""
    no_top_k: int = 0
    """The top-k value that disables top-k."""
    max_seed: int = 2**63
    """Seeds are sent modulo this number."""
    alternatives: int = 0
    """Maximum number of alternatives per step that it reports; 0 if it reports none."""
    chat_alternatives: int = 0
    """The same for chats."""
    counts_by: str = "logprobs"
    """Request field for the number of alternatives."""
    takes_ids: bool = False
    """Whether a prompt may be token ids."""
    scores: bool = False
    """Whether it reports the probabilities of a prompt's tokens (`echo`)."""
    whole_text: tuple[str, ...] = ()
    """Its fields for the number of last tokens that a penalty covers. Each is sent as the maximum text length: -1 is
    rejected, and a larger number makes the engine reserve memory.
    """
    after_temperature: bool = False
    """Whether reported probabilities are after the temperature; otherwise they are raw."""

    owned_by: str = ""
    """`owned_by` in its list of models, in lower case, by which it is recognized."""
    server: str = ""
    """Part of its `Server` header, in lower case, by which it is recognized."""
    unique_paths: frozenset[str] = frozenset()
    """Paths in its OpenAPI description that only it has."""
    own_api: Callable[[EngineClient, threading.Event], EngineListing | None] | None = None
    """(client, cancel) → its models, read through an API that only it has; None if the answers are not its own. Raises
    EngineError, CancelledError.
    """
    describe_model: Callable[[EngineClient, EngineModel, threading.Event], EngineModel] | None = None
    """(client, model, cancel) → the model with further details. Raises EngineError, CancelledError."""
    default_tag: str = ""
    """What it appends to a model's name that has no tag."""
    local_port: int = 0
    """The port on which it listens on this computer unless configured otherwise; 0 if it is not searched for."""
    local_variable: str = ""
    """The environment variable that configures its host and port."""
    list_may_fail: bool = False
    """Whether its list of models may fail although it works."""
    loads_any_model: bool = False
    """Whether it loads models that are not in its list, or accepts any name."""

    grammars: Mapping[str, GrammarFormat] = field(default_factory=dict)
    """Supported kinds of grammars: kind → the request fields for it."""
    chat_grammars: Mapping[str, GrammarFormat] | None = None
    """The same for chats, if they differ."""
    build_settings: Callable[[Settings, bool, int], Body] | None = None
    """(settings by our names, whether it samples, seed) → request fields, if it does not use the usual ones."""
    no_probabilities_notice: str = ""
    """What to do if it was started without probabilities. Such an engine answers a request for them with an internal
    error.
    """
    tokenizer: EngineTokenizer | None = None
    native: NativeEndpoint | None = None
    recover_tokens: Callable[[ConnectedModel, threading.Event], TokenRecovery] | None = None
    """(model, cancel) → recovery of the tokens that it does not report."""
    read_usage: UsageReader | None = None
    """Reads its own statistics."""
    aliases: tuple[str, ...] = ()
    order: int = 100
