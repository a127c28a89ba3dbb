"""What an engine on another machine has not, of what a model in memory has: each with its reason."""

from __future__ import annotations

from collections.abc import Mapping

from core import strategies
from core.errors import CacheError, MediaRefusedError, ParameterError, StrategyError
from core.parameter import Parameter, check
from core.remote.backends import OFF_VALUES, Kind
from core.request import Request
from core.strategies.base import Strategy, beam_rows
from core.strategies.flags import Flags, flags_of
from resources.language import mark, tr

DEFAULT_CACHE = "dynamic"
"""What a request names that says nothing of its cache; the engine keeps its own."""
LOCAL_SETTINGS = frozenset({"max_time"})
"""Settings that are minded on this side of the line."""
_IGNORED_SETTINGS = frozenset({
    "do_sample", "num_beams", "num_beam_groups", "use_cache", "max_length", "pad_token_id", "bos_token_id",
    "transformers_version", "early_stopping", "length_penalty", "diversity_penalty", "penalty_alpha",
    "decoder_start_token_id", "_from_model_config", "return_dict_in_generate", "output_scores", "output_logits",
    "output_attentions", "output_hidden_states", "cache_implementation", "num_assistant_tokens",
    "num_assistant_tokens_schedule", "assistant_confidence_threshold",
})  # fmt: skip
"""What decides the strategy, or has no effect on greedy decoding and sampling."""
_NO_DRAFTS = mark("{engine} says one token at a time, and lets no draft of ours be checked. It may draft by itself, if it "
               "was started so.")  # fmt: skip
_NO_BEAMS = mark("{engine} tells whole texts of a beam search, not how its beams grew.")
_NO_INTERNALS = mark("It needs what happens inside the model, and {engine} tells tokens only.")
_NO_CACHE = mark("{engine} keeps its own cache on its machine.")
_NO_SETTING = mark("{engine} has no such setting.")


def is_plain_decoding(strategy: Strategy) -> bool:
    """Whether it takes one token after the other by the model's scores alone: what every engine does."""
    return strategy in (strategies.selected_by(Flags()), strategies.selected_by(Flags(samples=True)))


def strategy_unsupported_reason(strategy: Strategy, kind: Kind) -> str | None:
    """Sentence on why it cannot be asked of that engine; None where it can."""
    if is_plain_decoding(strategy):
        return None
    reason = _NO_DRAFTS if strategy.speculates else _NO_BEAMS if strategy.rows is beam_rows else _NO_INTERNALS
    return tr(reason).format(engine=kind.title)


def cache_unsupported_reason(name: str, kind: Kind) -> str | None:
    """Sentence on why that cache cannot be asked for; None for the one that is nothing in particular."""
    return tr(_NO_CACHE).format(engine=kind.title) if name != DEFAULT_CACHE else None


def setting_unsupported_reason(parameter: Parameter, kind: Kind) -> str | None:
    """Sentence on why it has no effect there; None where it has."""
    if parameter.name in kind.settings or parameter.name in LOCAL_SETTINGS:
        return None
    return tr(_NO_SETTING).format(engine=kind.title)


def check_request(request: Request, given: Mapping[str, object], kind: Kind) -> Strategy:
    """The strategy, where the engine can do all that is asked. Raises StrategyError, CacheError, ParameterError,
    MediaRefusedError."""
    flags = flags_of(given, bool(request.drafters))
    strategy = strategies.named(request.strategy) if request.strategy else strategies.selected_by(flags)
    if reason := strategy_unsupported_reason(strategy, kind):
        raise StrategyError(
            tr("{strategy} cannot run: {reason}").format(strategy=tr(strategy.title), reason=reason),
            tr("Choose greedy decoding or sampling, or a model in this machine's memory."),
        )
    if reason := cache_unsupported_reason(request.cache, kind):
        raise CacheError(reason, tr("Choose the dynamic cache, which asks for nothing in particular."))
    _check_settings(strategy, {**given, **request.options}, kind)
    if request.media:
        raise MediaRefusedError(
            tr("Sound and pictures are not sent to an engine on another machine: {engine} is asked in text.").format(
                engine=kind.title
            ),
            tr("Remove the file, or choose a model in this machine's memory."),
        )
    if request.negative_prompt is not None:
        raise ParameterError(tr(_NO_SETTING).format(engine=kind.title), tr("Leave it out."), "negative_prompt")
    return strategy


def _check_settings(strategy: Strategy, given: Mapping[str, object], kind: Kind) -> None:
    known = {parameter.name: parameter for one in strategies.registry.values() for parameter in one.parameters}
    own = {parameter.name: parameter for parameter in strategy.parameters}
    for name, value in given.items():
        parameter = own.get(name) or known.get(name)
        if value is None or name in _IGNORED_SETTINGS:
            continue
        if parameter is not None:
            check(parameter, value)
        usual = parameter is not None and value in (parameter.default, parameter.unset) and name != "top_k"
        if usual or name in kind.settings or name in LOCAL_SETTINGS or value == OFF_VALUES.get(name, ...):
            continue
        raise ParameterError(
            tr("{engine} has no setting “{name}”, and {value} of it was asked for.").format(
                engine=kind.title, name=name, value=value
            ),
            tr("Leave it out. It knows: {names}.").format(names=", ".join(sorted(kind.settings))),
            name,
        )
