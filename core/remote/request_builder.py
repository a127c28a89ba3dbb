"""Build the HTTP request of a run: path and body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from decodescope.core.common.run_settings import RunSettings
from decodescope.core.errors import EmptyPromptError, ParameterError, PromptError
from decodescope.core.grammar.grammar_setting import KINDS, TITLES, grammar_kind
from decodescope.core.remote.engines.base import Body, EngineKind
from decodescope.core.remote.engines.formats import OFF_VALUES
from decodescope.core.remote.remote_model import RemoteModel, check_request
from decodescope.core.request import Request
from decodescope.core.settings import check_request_fields, merge_settings
from decodescope.core.strategies.base import Strategy
from decodescope.resources.language import join_names, tr


def grammar_fields(grammar: Mapping[str, object], kind: EngineKind, is_chat: bool) -> Body:
    """Return the request fields for a grammar. Raises ParameterError if the engine does not support it."""
    wordings = kind.grammars if kind.chat_grammars is None or not is_chat else kind.chat_grammars
    form = grammar_kind(grammar)
    if form not in wordings:
        raise _unsupported_error(kind, TITLES[form], [tr(TITLES[name]) for name in KINDS if name in wordings])
    return wordings[form](grammar[form])


def _unsupported_error(kind: EngineKind, title: str, known_names: Sequence[str]) -> ParameterError:
    remedy = (
        tr("Available: {names}.").format(names=join_names(known_names))
        if known_names
        else tr("Use it in a chat, or remove it.")
    )
    return ParameterError(
        tr("{engine} does not support this kind of grammar: {kind}.").format(engine=kind.title, kind=tr(title)),
        remedy,
        "grammar",
    )


_DEFAULT_MAX_NEW_TOKENS = 20
"""Default number of new tokens, as in `generate`."""
_DEFAULT_CONTEXT = 2**17
"""Assumed context length in tokens if the engine does not report it."""


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """A validated request in an engine's format."""

    strategy: Strategy
    settings: Mapping[str, object]
    """The settings that are sent, by our names."""
    path: str
    body: dict[str, Any]
    prompt_text: str
    """The prompt as text."""
    beginning: str
    """Text that the answer begins with."""
    sequence_count: int
    max_new_tokens: int
    max_seconds: float | None
    """Time limit of the run."""
    is_sampling: bool
    is_chat: bool
    alternatives: int
    """Number of alternatives requested per step."""

    @property
    def active_settings(self) -> frozenset[str]:
        """Settings applied between the raw distribution and the choice."""
        return frozenset(
            name
            for name, value in self.settings.items()
            if name not in _NON_PROCESSING_SETTINGS and value != OFF_VALUES.get(name, ...)
        )

    def without_probabilities(self) -> dict[str, Any]:
        """Return the body without the request for probabilities."""
        return {name: value for name, value in self.body.items() if name not in _PROBABILITY_FIELDS}


_PROBABILITY_FIELDS = ("logprobs", "top_logprobs", "n_probs")
_NON_PROCESSING_SETTINGS = frozenset(
    {
        "max_new_tokens",
        "stop_strings",
        "num_return_sequences",
        "eos_token_id",
        "max_time",
        "xtc_threshold",
        "dry_base",
        "dry_allowed_length",
        "dry_range",
    }
)


def build_request(model: RemoteModel, request: Request) -> EngineRequest:
    """Build the engine's request. Raises StrategyError, CacheError, ParameterError, PromptError."""
    check_request_fields(request)
    resolved = merge_settings(request, {})
    strategy = check_request(request, resolved, model.kind)
    samples = bool(resolved.get("do_sample"))
    settings = _settings_to_send(model, resolved)
    prompt, is_chat = _prompt_to_send(model, request)
    before = model.spell(request.beginning) if request.beginning else ""
    if before and "grammar" in settings:
        raise ParameterError(
            tr("The engine starts the grammar with its answer and cannot continue from the middle of a text."),
            tr("Remove the grammar, or run from the start."),
            "grammar",
        )
    if is_chat and before:
        raise PromptError(
            tr("The engine only writes complete chat answers and cannot continue from the middle of one."),
            tr("Run the chat again, or continue from a text prompt."),
        )
    if isinstance(prompt, str):
        prompt += before
    body = _build_body(model, request, settings, samples, is_chat) | {"messages" if is_chat else "prompt": prompt}
    path = f"{model.address.path}/{'chat/completions' if is_chat else 'completions'}"
    return EngineRequest(
        strategy,
        settings,
        path,
        body,
        _prompt_text(prompt, before),
        before,
        int(settings.get("num_return_sequences", 1)),
        int(settings["max_new_tokens"]),
        resolved.get("max_time"),
        samples,
        is_chat,
        _alternative_count(model, request, is_chat),
    )


def _settings_to_send(model: RemoteModel, settings: RunSettings) -> dict[str, Any]:
    """Return the settings to send: those of the request, and defaults for the others."""
    kind, requested = model.kind, settings.from_sources("request")
    found = {name: requested[name] for name in kind.settings if name in requested}
    found.setdefault("max_new_tokens", _DEFAULT_MAX_NEW_TOKENS)
    dice = {"temperature", "top_p", "top_k", "min_p", "typical_p", "top_n_sigma", "xtc_probability"}
    if not settings.get("do_sample"):
        return {name: value for name, value in found.items() if name not in dice}
    return {name: settings.get(name, OFF_VALUES.get(name)) for name in dice & set(kind.settings)} | found


def _build_body(
    model: RemoteModel, request: Request, settings: Mapping[str, Any], samples: bool, is_chat: bool
) -> dict[str, object]:
    kind = model.kind
    common: dict[str, object] = {"model": model.name, "stream": True}
    if kind.build_settings is not None:
        return {**common, **kind.build_settings(settings, samples, request.seed)}
    quiet = {"repetition_penalty": OFF_VALUES["repetition_penalty"], "dry_multiplier": 0.0}
    requested = {**{name: value for name, value in quiet.items() if name in kind.settings}, **settings}
    formed = grammar_fields(requested.pop("grammar"), kind, is_chat) if "grammar" in requested else {}
    if not samples:
        requested["temperature"] = 0.0
    theirs = {kind.settings[name]: _engine_value(model, name, value) for name, value in requested.items()}
    whole = dict.fromkeys(kind.whole_text, model.context or _DEFAULT_CONTEXT)
    probability_fields = _probability_fields(model, request, is_chat)
    return {
        **common,
        **whole,
        **theirs,
        **formed,
        "seed": request.seed % kind.max_seed,
        **kind.extras,
        **probability_fields,
    }


def _engine_value(model: RemoteModel, name: str, value: Any) -> Any:
    if name == "top_k" and value == 0:
        return model.kind.no_top_k
    if name == "dry_range" and value == 0:
        return model.context or _DEFAULT_CONTEXT
    if name in ("stop_strings", "eos_token_id"):
        return [value] if isinstance(value, (str, int)) else list(value)
    return value


def _probability_fields(model: RemoteModel, request: Request, is_chat: bool) -> dict[str, object]:
    """Return the request fields for the number of alternatives."""
    count = _alternative_count(model, request, is_chat)
    if not count:
        return {}
    return {"logprobs": True, "top_logprobs": count} if is_chat else {model.kind.counts_by: count}


def _alternative_count(model: RemoteModel, request: Request, is_chat: bool) -> int:
    max_count = model.kind.chat_alternatives if is_chat else model.kind.alternatives
    return min(request.top_n, max_count) if model.reports_probabilities else 0


def _prompt_to_send(model: RemoteModel, request: Request) -> tuple[str | list[object], bool]:
    """Return the prompt as sent, and whether it is a chat. Raises PromptError."""
    prompt = request.prompt
    if isinstance(prompt, str):
        if not prompt and not request.beginning:
            raise EmptyPromptError(tr("The prompt is empty."), tr("Write a text for the model to continue."))
        return prompt, False
    items: list[Any] = list(prompt)
    if items and all(isinstance(item, Mapping) for item in items):
        return [{"role": str(item.get("role")), "content": item.get("content")} for item in items], True
    if items and all(isinstance(item, int) and not isinstance(item, bool) for item in items):
        if not model.kind.takes_ids:
            raise PromptError(
                tr("{engine} accepts text, not token ids.").format(engine=model.kind.title),
                tr("Pass the prompt as text."),
            )
        if request.beginning:
            raise ParameterError(
                tr("A prompt of token ids cannot be combined with a beginning of the answer."), tr("Pass one text."),
                "beginning",
            )  # fmt: skip
        return items, False
    raise PromptError(tr("The prompt is neither text nor a chat."), tr("Pass a text, or the messages of one chat."))


def _prompt_text(prompt: str | list[Any], before: str) -> str:
    if isinstance(prompt, str):
        return prompt.removesuffix(before) if before else prompt
    if all(isinstance(item, Mapping) for item in prompt):
        return "\n".join(str(item["content"]) for item in prompt)
    return " ".join(f"⟨{item}⟩" for item in prompt)
