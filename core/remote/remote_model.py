"""A remote model, as returned by `core.load` for an address."""

from __future__ import annotations

import difflib
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from decodescope.core import caches, strategies
from decodescope.core.checks.arguments import cancel_event_or_new
from decodescope.core.common.hf_generation import METADATA_FIELDS
from decodescope.core.errors import (
    CacheError,
    EngineBusyError,
    EngineError,
    EngineRefusedError,
    EngineUnreachableError,
    MediaRefusedError,
    ModelNotFoundError,
    ParameterError,
    StrategyError,
)
from decodescope.core.events import ModelIdentity
from decodescope.core.models.modalities import TEXT, Modalities
from decodescope.core.parameter import Parameter, check
from decodescope.core.remote import engines
from decodescope.core.remote.address import Address, keep_key, parse
from decodescope.core.remote.client import EngineClient, short_timeout_client
from decodescope.core.remote.engines.base import EngineKind, EngineListing, EngineModel
from decodescope.core.remote.engines.formats import OFF_VALUES, is_count, is_model_name
from decodescope.core.remote.http_stream import ResponseHead, Timeouts
from decodescope.core.remote.responses import TokenTable
from decodescope.core.request import Request
from decodescope.core.strategies.base import Flags, Strategy, beam_rows
from decodescope.resources.language import join_names, mark, tr

DEFAULT_CACHE = "dynamic"
"""The cache of a request that does not choose one; the engine uses its own."""
LOCAL_SETTINGS = frozenset({"max_time"})
"""Settings that are applied on this side of the connection."""
_IGNORED_SETTINGS = METADATA_FIELDS | {
    "do_sample", "num_beams", "num_beam_groups", "use_cache", "max_length", "pad_token_id", "bos_token_id",
    "early_stopping", "length_penalty", "diversity_penalty", "penalty_alpha",
    "decoder_start_token_id", "return_dict_in_generate", "output_scores", "output_logits",
    "output_attentions", "output_hidden_states", "cache_implementation", "num_assistant_tokens",
    "num_assistant_tokens_schedule", "assistant_confidence_threshold",
}  # fmt: skip
"""Settings that select the strategy, or have no effect on greedy decoding and sampling."""
_NO_DRAFTS = mark("{engine} generates one token at a time and cannot verify our drafts. It may use its own drafts if "
    "started with them.")  # fmt: skip
_NO_BEAMS = mark("{engine} returns only complete texts of a beam search, not the steps of its beams.")
_NO_INTERNALS = mark("It needs the model's internal values, and {engine} reports only tokens.")
_NO_CACHE = mark("{engine} uses its own cache on its machine.")
_NO_SETTING = mark("{engine} does not have this setting.")


def is_plain_decoding(strategy: Strategy) -> bool:
    """Return whether it chooses one token after the other from the model's scores alone, as every engine can."""
    return strategy in (strategies.selected_by(Flags()), strategies.selected_by(Flags(samples=True)))


def strategy_unsupported_reason(strategy: Strategy, kind: EngineKind) -> str | None:
    """Return a sentence on why the engine does not support the strategy; None if it does."""
    if is_plain_decoding(strategy):
        return None
    reason = _NO_DRAFTS if strategy.speculates else _NO_BEAMS if strategy.rows is beam_rows else _NO_INTERNALS
    return tr(reason).format(engine=kind.title)


def cache_unsupported_reason(name: str, kind: EngineKind) -> str | None:
    """Return a sentence on why the cache cannot be chosen; None for the default one."""
    return tr(_NO_CACHE).format(engine=kind.title) if name != DEFAULT_CACHE else None


def setting_unsupported_reason(parameter: Parameter, kind: EngineKind) -> str | None:
    """Return a sentence on why the setting has no effect; None if it has."""
    if parameter.name in kind.settings or parameter.name in LOCAL_SETTINGS:
        return None
    return tr(_NO_SETTING).format(engine=kind.title)


def check_request(request: Request, settings: Mapping[str, object], kind: EngineKind) -> Strategy:
    """Return the strategy if the engine supports the whole request. Raises StrategyError, CacheError, ParameterError,
    MediaRefusedError.
    """
    strategy = strategies.select(request.strategy, settings, bool(request.drafters))
    if reason := strategy_unsupported_reason(strategy, kind):
        raise StrategyError(
            tr("{strategy} cannot run: {reason}").format(strategy=tr(strategy.title), reason=reason),
            tr("Choose greedy decoding or sampling, or a local model."),
        )
    if reason := cache_unsupported_reason(request.cache, kind):
        raise CacheError(reason, tr("Choose the dynamic cache, which is the default."))
    _check_settings(strategy, request.settings, kind)
    if request.media:
        raise MediaRefusedError(
            tr("Sound and pictures cannot be sent to a remote engine: {engine} receives only text.").format(
                engine=kind.title
            ),
            tr("Remove the file, or choose a local model."),
        )
    if request.negative_prompt is not None:
        raise ParameterError(tr(_NO_SETTING).format(engine=kind.title), tr("Remove this setting."), "negative_prompt")
    return strategy


def _check_settings(strategy: Strategy, settings: Mapping[str, object], kind: EngineKind) -> None:
    known = {parameter.name: parameter for one in strategies.registry.values() for parameter in one.parameters}
    own = {parameter.name: parameter for parameter in strategy.parameters}
    for name, value in settings.items():
        parameter = own.get(name) or known.get(name)
        if value is None or name in _IGNORED_SETTINGS:
            continue
        if parameter is not None:
            check(parameter, value)
        usual = parameter is not None and value in (parameter.default, parameter.unset) and name != "top_k"
        if usual or name in kind.settings or name in LOCAL_SETTINGS or value == OFF_VALUES.get(name, ...):
            continue
        raise ParameterError(
            tr("{engine} has no setting “{name}”, but it was set to {value}.").format(
                engine=kind.title, name=name, value=value
            ),
            tr("Remove it. Supported: {names}.").format(names=join_names(sorted(kind.settings))),
            name,
        )


_MAX_MODELS = 10_000


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """An engine found at an address."""

    kind: EngineKind
    models: tuple[EngineModel, ...] = ()
    reports_probabilities: bool = True
    """Whether this version of the engine reports probabilities."""


def probe(address: Address, cancel: threading.Event | None = None) -> EngineInfo:
    """Identify an engine (`kind`) and list its `models`. Raises EngineError."""
    return identify_engine(EngineClient(address), cancel_event_or_new(cancel))


def identify_engine(client: EngineClient, cancel: threading.Event) -> EngineInfo:
    """Identify the engine with an existing client. Raises EngineError, CancelledError."""
    try:
        listed, head = client.get(f"{client.address.path}/models", cancel)
    except EngineRefusedError:  # no list of models: runs may still work
        return EngineInfo(_kind_from_paths(client, cancel))
    except EngineBusyError:
        kind = _kind_from_paths(client, cancel)
        if kind.list_may_fail:
            return EngineInfo(kind)
        raise
    cards = [card for card in _model_cards(listed)[:_MAX_MODELS] if is_model_name(card.get("id"))]
    kind = _detect_kind(client, cards, head, cancel)
    if kind.name == engines.FALLBACK and (own := _own_listing(client, cancel)) is not None:
        kind, listing = own
        return EngineInfo(kind, listing.models, listing.reports_probabilities)
    return EngineInfo(kind, tuple(map(_served_model, cards)))


def _own_listing(client: EngineClient, cancel: threading.Event) -> tuple[EngineKind, EngineListing] | None:
    """Return the first kind of engine whose own API answers, with its models."""
    short = short_timeout_client(client)
    for kind in engines.registry.values():
        if kind.own_api is not None:
            try:
                listing = kind.own_api(short, cancel)
            except EngineError:
                continue
            if listing is not None:
                return kind, listing
    return None


def _model_cards(response: object) -> Sequence[dict[str, object]]:
    found = response.get("data") if isinstance(response, dict) else None
    return [card for card in found if isinstance(card, dict)] if isinstance(found, list) else []


def _detect_kind(
    client: EngineClient, cards: Sequence[dict[str, object]], head: ResponseHead, cancel: threading.Event
) -> EngineKind:
    owners = {str(card.get("owned_by", "")).lower() for card in cards}
    server = head.headers.get("server", "").lower()
    kinds = engines.registry.values()
    found = next((kind for kind in kinds if kind.owned_by and kind.owned_by in owners), None)
    if found is None:
        found = next((kind for kind in kinds if kind.server and kind.server in server), None)
    if found is not None:
        return found
    return _kind_from_paths(client, cancel) if "uvicorn" in server else engines.registry[engines.FALLBACK]


def _kind_from_paths(client: EngineClient, cancel: threading.Event) -> EngineKind:
    """Identify an engine by the paths in its OpenAPI description, some of which are unique to it."""
    try:
        described, _head = client.get(f"{client.address.root}/openapi.json", cancel)
    except (EngineRefusedError, EngineUnreachableError):
        return engines.registry[engines.FALLBACK]
    paths = described.get("paths") if isinstance(described, dict) else None
    has = set(paths) if isinstance(paths, dict) else set()
    kinds = (kind for kind in engines.registry.values() if kind.unique_paths and kind.unique_paths <= has)
    return next(kinds, engines.registry[engines.FALLBACK])


def _served_model(card: dict[str, object]) -> EngineModel:
    meta = card.get("meta")
    meta = meta if isinstance(meta, dict) else {}
    sizes = (card.get("max_model_len"), meta.get("n_ctx"), meta.get("n_ctx_train"), card.get("context_length"))
    context = next((size for size in sizes if is_count(size)), None)
    vocabulary = meta.get("n_vocab")
    return EngineModel(str(card["id"]), context, vocabulary if is_count(vocabulary) else 0)


def select_model(engine: EngineInfo, address: Address) -> EngineModel:
    """Return the model that the address means. Raises ModelNotFoundError."""
    names = [model.name for model in engine.models]
    if not address.model and len(names) == 1:
        return engine.models[0]
    wanted = (address.model, f"{address.model}{engine.kind.default_tag}")
    known = next((model for model in engine.models if model.name in wanted), None)
    if known is not None:
        return known
    if address.model and (not names or engine.kind.loads_any_model):
        return EngineModel(address.model)
    raise _unknown_model_error(address, names)


def _unknown_model_error(address: Address, names: Sequence[str]) -> ModelNotFoundError:
    if not address.model:
        several = tr("The address names no model, and {place} has several.")
        cause = (several if names else tr("The address names no model, and {place} lists none.")).format(
            place=address.place
        )
    else:
        cause = tr("{place} has no model “{name}”.").format(place=address.place, name=address.model)
    near = difflib.get_close_matches(address.model, names, 3, 0.3) or names[:5]
    listed = join_names(near)
    remedy = tr("Add its name after #. Available: {names}.") if listed else tr("Add its name after #.")
    return ModelNotFoundError(cause, remedy.format(names=listed))


@dataclass(eq=False, slots=True)
class RemoteModel:
    """A model served by a remote engine."""

    client: EngineClient
    kind: EngineKind
    served: EngineModel
    words: TokenTable = field(default_factory=TokenTable)
    reports_probabilities: bool = True
    """Whether the engine reports probabilities; detected in the first run."""
    has_native_endpoint: bool = True
    """Whether the engine answers on its native endpoint; detected in the first run."""
    reads: bool = True
    """Whether the engine reports the tokens of a prompt; detected in the first run."""

    @property
    def address(self) -> Address:
        """Address of the engine."""
        return self.client.address

    @property
    def name(self) -> str:
        """Name of the model in the engine."""
        return self.served.name

    @property
    def place(self) -> str:
        """Host and port: `localhost:8000`."""
        return self.address.place

    @property
    def takes(self) -> Modalities:
        """Text only: nothing else is sent."""
        return TEXT

    @property
    def context(self) -> int | None:
        """Context length in tokens; None if the engine does not report it."""
        return self.served.context

    @property
    def vocabulary(self) -> int:
        """Vocabulary size; 0 if the engine does not report it."""
        return self.served.vocabulary_size

    @property
    def identity(self) -> ModelIdentity:
        """Known identity: the model's name, and the engine."""
        return ModelIdentity(self.name, self.kind.title)

    def refused_strategies(self) -> dict[str, str]:
        """Return why each unsupported strategy cannot be used, by name."""
        found = ((name, strategy_unsupported_reason(one, self.kind)) for name, one in strategies.registry.items())
        return {name: reason for name, reason in found if reason}

    def refused_caches(self) -> dict[str, str]:
        """Return why each unsupported cache cannot be used, by name."""
        found = ((name, cache_unsupported_reason(name, self.kind)) for name in caches.registry)
        return {name: reason for name, reason in found if reason}

    def refused_settings(self) -> dict[str, str]:
        """Return why each unsupported setting has no effect, by name."""
        known = (parameter for one in strategies.registry.values() for parameter in one.parameters)
        found = ((parameter.name, setting_unsupported_reason(parameter, self.kind)) for parameter in known)
        return {name: reason for name, reason in found if reason}

    def spell(self, beginning: object) -> str:
        """Convert words, or tokens reported by this engine, to the text that was shown for them. Raises
        ParameterError.
        """
        items = [*beginning] if isinstance(beginning, Iterable) and not isinstance(beginning, str) else [beginning]
        text, length = self.words.shown_prefix(items)
        for start, shown in ((length, text), (0, "")):
            try:
                return shown + b"".join(self._token_bytes(item) for item in items[start:]).decode()
            except UnicodeDecodeError:
                continue
        raise ParameterError(
            tr(
                "The answer is to begin with a token that is only part of a character, and {engine} accepts only text."
            ).format(engine=self.kind.title),
            tr("Choose a token that completes the character, or enter text."),
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
                tr("The answer is to begin with a token that {model} has not reported since it was connected.").format(
                    model=self.name
                ),
                tr("Run the text again first, or enter text."),
                "beginning",
            )
        return piece


def connect(
    name: str, *, key: str | None = None, allow_plain: bool = False, timeouts: Timeouts | None = None
) -> RemoteModel:
    """Connect to a model like `core.load` with an address, without torch. Raises EngineError and its subclasses, such
    as AddressError, and ModelNotFoundError.
    """
    address = parse(name, allow_plain)
    if key:
        keep_key(address, key)
    client = EngineClient(address, timeouts)
    cancel = threading.Event()
    found = identify_engine(client, cancel)
    served = select_model(found, address)
    if found.kind.describe_model is not None:
        with suppress(EngineError):  # the details are not needed to run
            served = found.kind.describe_model(short_timeout_client(client), served, cancel)
    return RemoteModel(client, found.kind, served, reports_probabilities=found.reports_probabilities)
