"""Plan a constrained search from a request: collect its phrases and check them against all settings that could forbid
them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import torch

from decodescope.core.decoding.beams.beam_search import BeamPlan
from decodescope.core.decoding.beams.constraint_banks import ConstraintBanks
from decodescope.core.decoding.beams.constraints import Alternative, ConstraintPhrase, Constraints, make_phrase
from decodescope.core.decoding.run import DecodingRun
from decodescope.core.errors import ParameterError, TokenizerMissingError
from decodescope.core.models.loaded_model import LoadedModel
from decodescope.core.parameter import Settings
from decodescope.resources.language import tr, trn

T = TypeVar("T")
TEXT, IDS = "must_contain", "force_words_ids"
_COMMA, _BAR = re.compile(r"(?<!\\),"), re.compile(r"(?<!\\)\|")


def parse_phrases(model: LoadedModel, text: str) -> list[ConstraintPhrase]:
    r"""Parse `dragon | knight, lived happily`: commas separate constraints, bars alternatives, `\` escapes both.

    Every alternative is tokenized with and without a leading space, and either form meets it. Raises ParameterError for
    words the tokenizer cannot encode, TokenizerMissingError without a tokenizer.
    """
    parts = [part for part in _COMMA.split(text) if part.strip()]
    if parts and model.tokenizer is None:
        raise TokenizerMissingError(
            tr("{model} has no tokenizer, so words cannot be converted to tokens.").format(model=model.name),
            tr("Pass force_words_ids as token ids."),
        )
    return [_parse_phrase(model, part) for part in parts]


def _parse_phrase(model: LoadedModel, part: str) -> ConstraintPhrase:
    words = [_unescape(word) for word in _BAR.split(part) if word.strip()]
    found = [ids for word in words for ids in encode_variants(model, word)]
    label = " | ".join(words)
    if not found:
        raise ParameterError(
            tr("The vocabulary of {model} cannot encode “{label}”.").format(model=model.name, label=label),
            tr("Choose other words, or another model."),
            TEXT,
        )
    return make_phrase(found, label)


def _unescape(word: str) -> str:
    return word.replace("\\,", ",").replace("\\|", "|").strip()


def encode_variants(model: LoadedModel, word: str) -> list[Alternative]:
    """Return token ids that encode `word` with and without a leading space; only those that decode back to it."""
    plain, spaced, bracket = (_encode(model, text) for text in (word, f" {word}", "("))
    glued = _encode(model, f"({word}")
    forms = [spaced, plain]
    if glued[: len(bracket)] == bracket:
        # Some tokenizers put a space before every text, but not after a bracket.
        forms.append(glued[len(bracket) :])
    return [ids for ids in dict.fromkeys(forms) if ids and _decodes_to(model, ids, word)]


def _encode(model: LoadedModel, text: str) -> Alternative:
    return tuple(model.tokenizer.encode(text, add_special_tokens=False))


def _decodes_to(model: LoadedModel, ids: Alternative, word: str) -> bool:
    unknown = getattr(model.tokenizer, "unk_token_id", None)
    text = model.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False)
    return unknown not in ids and str(text).strip() == word


def phrases_from_settings(settings: Settings) -> list[ConstraintPhrase]:
    """Read `force_words_ids` and `constraints` of transformers 4. Raises ParameterError for another format."""
    given = list(_as_list(settings.get(IDS), IDS))
    for constraint in _as_list(settings.get("constraints"), "constraints"):
        given.append(getattr(constraint, "token_ids", constraint))
    return [_parse_ids(words) for words in given]


def _as_list(setting: Sequence[T] | None, name: str) -> Sequence[T]:
    value = setting or ()
    if not isinstance(value, (list, tuple)):
        raise ParameterError(tr("{name} is {value!r}.").format(name=name, value=value), tr("It must be a list."), name)
    return value


def _parse_ids(words: object) -> ConstraintPhrase:
    words = words.tolist() if isinstance(words, torch.Tensor) else words
    nested = [words] if isinstance(words, (list, tuple)) and words and isinstance(words[0], int) else words
    if not isinstance(nested, (list, tuple)) or not nested or not all(map(_is_id_list, nested)):
        raise ParameterError(
            tr("force_words_ids contains {words!r}.").format(words=words),
            tr("Pass a list of phrases, each a list of token ids, or a list of such lists as alternatives."),
            IDS,
        )
    return make_phrase(nested)


def _is_id_list(ids: object) -> bool:
    return isinstance(ids, (list, tuple)) and bool(ids) and all(isinstance(i, int) and i >= 0 for i in ids)


Ban = Callable[[Alternative], str | None]
"""Returns why an alternative can never be generated; None when it can."""


def drop_impossible(
    phrases: Sequence[ConstraintPhrase], bans: Sequence[Ban], token_text: Callable[[int], str]
) -> list[ConstraintPhrase]:
    """Remove impossible alternatives from the phrases. Raises ParameterError, with the reason, where none is left."""
    return [_drop_impossible(item, bans, token_text) for item in phrases]


def _drop_impossible(item: ConstraintPhrase, bans: Sequence[Ban], token_text: Callable[[int], str]) -> ConstraintPhrase:
    reasons = {ids: next((reason for ban in bans if (reason := ban(ids))), None) for ids in item.alternatives}
    open_ones = [ids for ids, reason in reasons.items() if reason is None]
    if open_ones:
        return make_phrase(open_ones, item.label)
    label = item.label or " | ".join("".join(map(token_text, ids)) for ids in item.alternatives)
    raise ParameterError(
        tr("The text can never contain “{label}”: {reason}.").format(label=label, reason=next(iter(reasons.values()))),
        tr("Remove this constraint, or relax the other setting."),
        TEXT if item.label else IDS,
    )


def collect_bans(settings: Settings, vocabulary: int, eos: frozenset[int], source: Sequence[int]) -> list[Ban]:
    """Collect the conditions that make a phrase impossible: vocabulary, end tokens and settings that forbid tokens."""
    suppressed = set(_as_list(settings.get("suppress_tokens"), "suppress_tokens"))
    words = [tuple(word) for word in _as_list(settings.get("bad_words_ids"), "bad_words_ids")]
    own, foreign = (int(settings.get(f"{name}no_repeat_ngram_size") or 0) for name in ("", "encoder_"))
    borrowed = _ngrams(tuple(source), foreign)
    checks: list[tuple[Callable[[Alternative], object], str]] = [
        (
            lambda ids: max(ids) >= vocabulary,
            tr("the vocabulary has {vocabulary:,} tokens").format(vocabulary=vocabulary),
        ),
        (lambda ids: eos & set(ids), tr("it contains an end token, which would end the text first")),
        (lambda ids: suppressed & set(ids), tr("“suppress_tokens” forbids one of its tokens")),
        (lambda ids: any(_contains(word, ids) for word in words), tr("“bad_words_ids” forbids it")),
        (
            lambda ids: _repeats(ids, own),
            trn(
                "it repeats a token, which “no_repeat_ngram_size” forbids",
                "it repeats {own} tokens, which “no_repeat_ngram_size” forbids",
                own,
            ).format(own=own),
        ),
        (
            lambda ids: borrowed & _ngrams(ids, foreign),
            tr("“encoder_no_repeat_ngram_size” forbids repeating the source"),
        ),
    ]
    return [partial(_reason, forbids, why) for forbids, why in checks]


def _reason(forbids: Callable[[Alternative], object], why: str, ids: Alternative) -> str | None:
    return why if forbids(ids) else None


def _ngrams(ids: Alternative, size: int) -> set[Alternative]:
    return {ids[i : i + size] for i in range(len(ids) - size + 1)} if size else set()


def _repeats(ids: Alternative, size: int) -> bool:
    return bool(size) and len(_ngrams(ids, size)) < len(ids) - size + 1


def _contains(word: Alternative, ids: Alternative) -> bool:
    return any(ids[i : i + len(word)] == word for i in range(len(ids) - len(word) + 1))


def plan_constrained_search(run: DecodingRun) -> BeamPlan:
    """Build the search plan of a request. Raises ParameterError, with the reason, for constraints that no text can
    meet.
    """
    words, ids = _collect_phrases(run)
    if not words and not ids:
        return BeamPlan()
    pool = run.settings.get("pool") or "auto"
    if pool == "auto":
        pool = "paper" if words else "transformers"
    limit = _token_budget(run)
    constraints = Constraints(words + ids, forgetful=pool == "transformers")
    _check_budget(run, constraints, limit, TEXT if words else IDS)
    banks = ConstraintBanks(constraints, pool, run.stopping.eos, limit)
    return BeamPlan(banks=banks, ended_beams_count=pool == "transformers")


def _collect_phrases(run: DecodingRun) -> tuple[list[ConstraintPhrase], list[ConstraintPhrase]]:
    """Return (phrases from text, phrases from ids), without impossible alternatives."""
    settings, model = run.settings, run.model
    source = run.prompt_ids
    bans = collect_bans(settings, model.vocabulary, run.stopping.eos, source)
    words = parse_phrases(model, str(run.settings.get("must_contain") or ""))
    return drop_impossible(words, bans, model.pieces.__getitem__), drop_impossible(
        phrases_from_settings(settings), bans, model.pieces.__getitem__
    )


def _token_budget(run: DecodingRun) -> int:
    """Return the number of new tokens available for the constraints: the limit minus tokens that are forced."""
    limit = min(run.stopping.max_new, run.stopping.context_limit or run.stopping.max_new)
    forced = run.settings.get("forced_eos_token_id") is not None and limit == run.stopping.max_new
    return limit - int(forced)


def _check_budget(run: DecodingRun, constraints: Constraints, limit: int, parameter: str) -> None:
    needed = constraints.min_remaining(constraints.start)
    first = run.settings.get("forced_bos_token_id") if run.model.is_encoder_decoder else None
    available = limit - int(first is not None and first not in constraints.advancing_tokens(constraints.start))
    if needed > available:
        raise ParameterError(
            tr("The required text takes at least {needed:,} tokens, but only {available:,} are allowed.").format(
                needed=needed, available=available
            ),
            tr("Allow more new tokens, or require less."),
            parameter,
        )
