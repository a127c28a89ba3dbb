"""The funnel: every logits processor in transformers' order, each by its name, with what it leaves over.

The processors are transformers' own classes; the order is that of `algorithms`: penalties and bans first, then,
when sampling, the filters, last watermark and renormalisation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from transformers import GenerationConfig
from transformers.generation import logits_process

from core.errors import ParameterError
from core.events import StageKind
from core.models.model import LoadedModel

lp: Any = logits_process  # its annotations are narrower than what its classes accept
Processor = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


class Heading(NamedTuple):
    """What an event says of a stage besides its figures; fields as in `core.events.Stage`."""

    name: str
    label: str
    value: float | None = None
    kind: StageKind = "shift"
    phrase: str = ""


@dataclass(frozen=True, slots=True)
class Context:
    """What processors need to know of the run besides their own setting."""

    model: LoadedModel
    config: GenerationConfig
    start: int
    """Length of the decoder's input before the first new token."""
    max_length: int
    encoder_ids: torch.Tensor | None
    eos: torch.Tensor | None
    keep: int
    negative_ids: torch.Tensor | None = None


@dataclass(frozen=True, slots=True)
class NamedProcessor:
    """One stage: what it is called, and the processor."""

    heading: Heading
    process: Processor

    @property
    def name(self) -> str:
        """The setting's name."""
        return self.heading.name


@dataclass(slots=True)
class Funnel:
    """All stages that are switched on, in order."""

    stages: list[NamedProcessor] = field(default_factory=list)

    def __call__(self, ids: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        """Processed scores [B, V] for sequences `ids` [B, T]; `logits` is left as it is."""
        return self.trace(ids, logits)[-1]

    def trace(self, ids: torch.Tensor, logits: torch.Tensor) -> list[torch.Tensor]:
        """The scores before the first stage and after each, all [B, V]."""
        scores = [logits]
        for stage in self.stages:
            scores.append(stage.process(ids, scores[-1]))
        return scores


@dataclass(frozen=True, slots=True)
class _Rule:
    name: str
    label: str
    """Format string; `{v}` is the setting's value."""
    build: Callable[[Any, Context], Processor]
    is_on: Callable[[Any], bool] = bool
    phrase: str = ""
    """The same for what a sentence calls it; empty: the label."""
    kind: StageKind = "shift"
    needs_eos: bool = False
    needs_source: bool = False
    sampling: bool = False


def build_funnel(context: Context) -> Funnel:
    """The stages a configuration switches on. Raises ParameterError when a setting cannot be built."""
    config = context.config
    stages = []
    for rule in _RULES:
        value = getattr(config, rule.name, None)
        if value is None or not rule.is_on(value) or (rule.sampling and not config.do_sample):
            continue
        if (rule.needs_eos and context.eos is None) or (rule.needs_source and context.encoder_ids is None):
            continue
        stages.append(NamedProcessor(_heading(rule, value), _build(rule, value, context)))
    return Funnel(stages)


def _heading(rule: _Rule, value: Any) -> Heading:
    label, phrase = (words.format(v=_short(value)) for words in (rule.label, rule.phrase or rule.label))
    return Heading(rule.name, label, _number(value), rule.kind, phrase)


def _build(rule: _Rule, value: Any, context: Context) -> Processor:
    try:
        return rule.build(value, context)
    except (ValueError, TypeError, IndexError) as error:
        raise ParameterError(
            f"The setting {rule.name} cannot be used: {error}", "Correct it or switch it off.", rule.name
        ) from error


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if isinstance(value, (int, str)) else f"{len(value)}" if isinstance(value, Sequence) else ""


def _number(value: Any) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _guidance(value: float, c: Context) -> Processor:
    if c.model.is_encoder_decoder or c.model.is_recurrent:
        raise ValueError("guidance works with decoder-only transformers")
    processor: Processor = lp.UnbatchedClassifierFreeGuidanceLogitsProcessor(
        value, c.model.model, unconditional_ids=c.negative_ids, use_cache=True
    )
    return processor


def _bias(value: Any, c: Context) -> Processor:
    processor: Processor = lp.SequenceBiasLogitsProcessor(sequence_bias=value)
    return processor


def _begin_suppress(value: Any, c: Context) -> Processor:
    shift = 1 if c.start <= 1 and c.config.forced_bos_token_id is not None else 0
    processor: Processor = lp.SuppressTokensAtBeginLogitsProcessor(value, c.start + shift, device=c.model.device)
    return processor


def _watermark(value: Any, c: Context) -> Processor:
    processor: Processor = value.construct_processor(c.model.vocabulary, c.model.device)
    return processor


def _not_one(value: Any) -> bool:
    return bool(value != 1.0)


def _below_one(value: Any) -> bool:
    return bool(value < 1.0)


def _given(value: Any) -> bool:
    return True


def _open_unit(value: Any) -> bool:
    return bool(0.0 < value < 1.0)


_RULES: tuple[_Rule, ...] = (
    _Rule("guidance_scale", "guidance {v}", _guidance, _not_one, phrase="guidance {v}"),
    _Rule("sequence_bias", "sequence bias", _bias, _given, phrase="the sequence bias"),
    _Rule(
        "encoder_repetition_penalty", "faithfulness {v}",
        lambda v, c: lp.EncoderRepetitionPenaltyLogitsProcessor(penalty=float(v), encoder_input_ids=c.encoder_ids),
        _not_one, needs_source=True, phrase="the faithfulness of {v}",
    ),
    _Rule(
        "repetition_penalty", "repetition {v}", lambda v, c: lp.RepetitionPenaltyLogitsProcessor(float(v)), _not_one,
        phrase="the repetition penalty of {v}",
    ),
    _Rule(
        "no_repeat_ngram_size", "no {v}-gram twice", lambda v, c: lp.NoRepeatNGramLogitsProcessor(v),
        phrase="the ban on any {v} tokens coming twice", kind="ban",
    ),
    _Rule(
        "encoder_no_repeat_ngram_size", "no {v}-gram of the source",
        lambda v, c: lp.EncoderNoRepeatNGramLogitsProcessor(v, c.encoder_ids), needs_source=True,
        phrase="the ban on any {v} tokens of the source", kind="ban",
    ),
    _Rule(
        "bad_words_ids", "banned words", lambda v, c: lp.NoBadWordsLogitsProcessor(v, c.eos), _given,
        phrase="the list of banned words", kind="ban",
    ),
    _Rule(
        "min_length", "min length {v}", lambda v, c: lp.MinLengthLogitsProcessor(v, c.eos, device=c.model.device),
        needs_eos=True, phrase="the minimum length of {v}", kind="ban",
    ),
    _Rule(
        "min_new_tokens", "at least {v}",
        lambda v, c: lp.MinNewTokensLengthLogitsProcessor(c.start, v, c.eos, device=c.model.device), needs_eos=True,
        phrase="the minimum of {v} new tokens", kind="ban",
    ),
    _Rule(
        "forced_bos_token_id", "forced first", lambda v, c: lp.ForcedBOSTokenLogitsProcessor(v), _given,
        phrase="the forced first token", kind="ban",
    ),
    _Rule(
        "forced_eos_token_id", "forced last",
        lambda v, c: lp.ForcedEOSTokenLogitsProcessor(c.max_length, v, device=c.model.device), _given,
        phrase="the forced last token", kind="ban",
    ),
    _Rule(
        "remove_invalid_values", "repaired", lambda v, c: lp.InfNanRemoveLogitsProcessor(),
        phrase="the repair of invalid numbers",
    ),
    _Rule(
        "exponential_decay_length_penalty", "hurry",
        lambda v, c: lp.ExponentialDecayLengthPenalty(tuple(v), c.eos, c.start), _given, needs_eos=True,
        phrase="the hurry to the end",
    ),
    _Rule(
        "suppress_tokens", "suppressed {v}",
        lambda v, c: lp.SuppressTokensLogitsProcessor(v, device=c.model.device), _given,
        phrase="the list of suppressed tokens", kind="ban",
    ),
    _Rule(
        "begin_suppress_tokens", "not first {v}", _begin_suppress, _given,
        phrase="the list of tokens that may not come first", kind="ban",
    ),
    _Rule(
        "temperature", "T {v}", lambda v, c: lp.TemperatureLogitsWarper(float(v)), _not_one, sampling=True,
        phrase="temperature {v}",
    ),
    _Rule("top_h", "top-H {v}", lambda v, c: lp.TopHLogitsWarper(top_h=v), _given, sampling=True, kind="cut"),
    _Rule(
        "top_k", "top-k {v}", lambda v, c: lp.TopKLogitsWarper(top_k=v, min_tokens_to_keep=c.keep), sampling=True,
        kind="cut",
    ),
    _Rule(
        "top_p", "top-p {v}", lambda v, c: lp.TopPLogitsWarper(top_p=float(v), min_tokens_to_keep=c.keep),
        _below_one, sampling=True, kind="cut",
    ),
    _Rule(
        "min_p", "min-p {v}", lambda v, c: lp.MinPLogitsWarper(min_p=float(v), min_tokens_to_keep=c.keep),
        sampling=True, kind="cut",
    ),
    _Rule(
        "typical_p", "typical {v}", lambda v, c: lp.TypicalLogitsWarper(mass=v, min_tokens_to_keep=c.keep),
        _below_one, sampling=True, phrase="typical sampling {v}", kind="cut",
    ),
    _Rule(
        "epsilon_cutoff", "epsilon {v}", lambda v, c: lp.EpsilonLogitsWarper(epsilon=v, min_tokens_to_keep=c.keep),
        _open_unit, sampling=True, kind="cut",
    ),
    _Rule(
        "eta_cutoff", "eta {v}",
        lambda v, c: lp.EtaLogitsWarper(epsilon=v, min_tokens_to_keep=c.keep, device=c.model.device),
        _open_unit, sampling=True, kind="cut",
    ),
    _Rule("watermarking_config", "watermark", _watermark, _given, phrase="the watermark"),
    _Rule("renormalize_logits", "renormalised", lambda v, c: lp.LogitNormalization()),
)  # fmt: skip
