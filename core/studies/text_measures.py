"""Measures of the texts of a study. Most are computed from the stored rows, so that they can be changed after the runs.
Imports no torch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from decodescope.core import measures as plugin_measures
from decodescope.core.checks.name_suggestions import did_you_mean
from decodescope.core.errors import StudyError
from decodescope.core.measures import distinct
from decodescope.core.parameter import short_repr
from decodescope.core.system.optional_deps import why_missing
from decodescope.resources.language import join_names, mark, tr

Row: TypeAlias = dict[str, Any]
"""A text of a study with everything that is known about it, as in `Study.rows`."""


@dataclass(frozen=True, slots=True)
class StudyMeasure:
    """A measure of a text."""

    name: str
    """Name of its column, unique in a study."""
    help: str
    compute: Callable[[Row], float | None]
    """(row) → its value; None if it has none."""
    digits: int = 3
    needs_answers: bool = False
    judge: str = ""
    """The other model whose probabilities are measured; empty for none."""
    of_group: Callable[[Sequence[Row]], Sequence[float | None]] | None = None
    """Computes the values of all texts of a prompt in a cell together, instead of `compute`."""


def adjusted_distinct(ids: Sequence[Hashable], vocabulary: int) -> float | None:
    """Return distinct-1 divided by its expectation for a text of the same length whose tokens are drawn uniformly from
    the vocabulary: N / (V (1 − ((V − 1) / V)^C)) for N distinct ones of C tokens (Liu et al. 2022, arXiv 2202.13587).
    None without tokens, or if the size V of the vocabulary is unknown. It is the same for short and long texts of one
    kind, while distinct-1 falls with the length.
    """
    if not ids or vocabulary < 1:
        return None
    expected = vocabulary * (1.0 - ((vocabulary - 1) / vocabulary) ** len(ids))
    return len(set(ids)) / expected


def extract_answer(text: str, pattern: str) -> str | None:
    """Return the answer in a text: the last match of a pattern, or its first group; without a pattern the whole text.
    None if nothing matches.
    """
    if not pattern:
        return text.strip()
    found = None
    for found in re.finditer(pattern, text):  # noqa: B007  # the last one
        pass
    if found is None:
        return None
    answer = found[1] if found.re.groups else found[0]
    return None if answer is None else answer.strip()


def normalized(answer: str, ignore_case: bool) -> str:
    """Return an answer as it is compared: without white space around it."""
    answer = answer.strip()
    return answer.casefold() if ignore_case else answer


def is_json(text: str) -> bool:
    """Return whether a text is one JSON value (RFC 8259: no NaN or Infinity)."""
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def self_bleu(texts: Sequence[str]) -> list[float | None]:
    """Return for each text its BLEU-4 (0 to 1) against the other ones; their mean is self-BLEU (Zhu et al. 2018).

    Computed by sacrebleu with exponential smoothing. None if there is only one text.
    """
    from sacrebleu.metrics.bleu import BLEU

    if len(texts) < 2:
        return [None] * len(texts)
    bleu = BLEU(smooth_method="exp", effective_order=False)
    return [
        bleu.corpus_score([text], [[other] for at, other in enumerate(texts) if at != place]).score / 100
        for place, text in enumerate(texts)
    ]


def _stored(name: str) -> Callable[[Row], float | None]:
    return lambda row: row.get(name)


def _metric(name: str) -> Callable[[Row], float | None]:
    def compute(row: Row) -> float | None:
        value = row.get("metrics", {}).get(name)
        return None if value is None else float(value)

    return compute


def _exact_match(row: Row) -> float | None:
    return None if not row["answers"] else float(row["extracted"] is not None and row["extracted"] in row["answers"])


def _contains_answer(row: Row) -> float | None:
    text = row["compared_text"]
    return None if not row["answers"] else float(any(answer in text for answer in row["answers"]))


def _self_bleu_group(rows: Sequence[Row]) -> Sequence[float | None]:
    return self_bleu([row["text"] for row in rows])


_PLAIN: dict[str, tuple[str, Callable[[Row], float | None], int]] = {
    "length": (mark("New tokens."), _stored("tokens"), 1),
    "characters": (mark("Characters of the text."), lambda row: float(len(row["text"])), 0),
    "words": (mark("Words between white space."), lambda row: float(len(row["text"].split())), 1),
    "entropy": (mark("Mean entropy of the model's own distribution per token, in bits."), _stored("entropy"), 3),
    "distinct_1": (mark("Distinct tokens ÷ tokens. Falls with the length."), lambda row: distinct(row["ids"], 1), 3),
    "distinct_2": (mark("Distinct pairs of tokens ÷ pairs."), lambda row: distinct(row["ids"], 2), 3),
    "distinct_3": (mark("Distinct triples of tokens ÷ triples."), lambda row: distinct(row["ids"], 3), 3),
    "distinct_1_adjusted": (
        mark("Distinct tokens ÷ their expected number in a random text of the same length."),
        lambda row: adjusted_distinct(row["ids"], row.get("vocabulary") or 0), 3,
    ),
    "json": (mark("1 if the whole text is one JSON value."), lambda row: float(is_json(row["text"])), 3),
    "seconds": (mark("Seconds of the run, with all its texts."), _metric("seconds"), 3),
    "first_token_seconds": (mark("Seconds until the first token."), _metric("time_to_first_token"), 3),
    "tokens_per_second": (mark("Tokens per second after the first."), _metric("decode_tokens_per_second"), 1),
    "tokens_per_pass": (
        mark("Tokens per pass of the model; above 1 with drafts."), _metric("tokens_per_target_pass"), 2,
    ),
    "cache_bytes": (mark("Bytes of the key–value cache at the end."), _metric("cache_bytes"), 0),
    "cache_peak_bytes": (mark("Largest size of the key–value cache, in bytes."), _metric("cache_peak_bytes"), 0),
}  # fmt: skip
_OPTIONS: dict[str, tuple[str, ...]] = {
    "log_probability": ("model",), "repetition": ("n",), "regex": ("pattern",),
}  # fmt: skip
"""Measures with options of their own; all have `title`."""
_UNAVAILABLE = {
    "distinct_2_adjusted": mark("The number of possible pairs is so large that the adjustment changes nothing."),
    "distinct_3_adjusted": mark("The number of possible triples is so large that the adjustment changes nothing."),
    "mauve": mark("MAUVE needs an embedding model and thousands of texts."),
}


def measure_names() -> list[str]:
    """Return the names of all measures that a study can use, those of plug-ins last."""
    own = [*_PLAIN, *_OPTIONS, "exact_match", "contains_answer", "self_bleu"]
    return sorted(own) + list(plugin_measures.registry)


def default_measures(has_answers: bool) -> tuple[StudyMeasure, ...]:
    """Return the measures of a study that names none, with those of plug-ins."""
    names = ["length", "log_probability", "entropy", "distinct_2", "repetition", "seconds"]
    chosen = [*(["exact_match"] if has_answers else []), *names, *plugin_measures.registry]
    return tuple(make_measure({"name": name}) for name in chosen)


def make_measure(table: object) -> StudyMeasure:
    """Return the measure that an entry of `measures` describes. Raises StudyError whose `key` is that of the entry."""
    if not isinstance(table, dict) or not isinstance(table.get("name"), str):
        raise StudyError(
            tr("A measure is {value}.").format(value=short_repr(table)),
            tr("Write its name, or a table with a name and options."),
        )
    name = table["name"]
    if name in _UNAVAILABLE:
        raise StudyError(
            tr("The measure “{name}” is not available. {reason}").format(name=name, reason=tr(_UNAVAILABLE[name])),
            tr("Choose another measure."), key="name",
        )  # fmt: skip
    if name not in measure_names():
        raise StudyError(
            tr("The measure “{name}” does not exist.").format(name=name) + did_you_mean(name, measure_names()),
            tr("Available: {names}.").format(names=join_names(measure_names())), key="name",
        )  # fmt: skip
    known = ("name", "title", *_OPTIONS.get(name, ()))
    for key, value in table.items():
        if key not in known:
            raise StudyError(
                tr("The measure “{name}” has no option “{option}”.").format(name=name, option=key),
                tr("Available: {names}.").format(names=join_names(known[1:])), key=key,
            )  # fmt: skip
        if key in ("title", "model", "pattern") and not isinstance(value, str):
            raise StudyError(tr("The value is {value}.").format(value=short_repr(value)), tr("Write a text."), key=key)
    return _make_known_measure(name, table)


def _make_known_measure(name: str, table: Mapping[str, Any]) -> StudyMeasure:
    title = table.get("title")
    if name == "log_probability":
        return _log_probability(table.get("model", ""), title)
    if name == "repetition":
        return _repetition(table.get("n", 4), title)
    if name == "regex":
        return _regex(table, title)
    if name == "exact_match":
        about = tr("1 if the extracted answer is a right one.")
        return StudyMeasure(title or name, about, _exact_match, needs_answers=True)
    if name == "contains_answer":
        about = tr("1 if the text contains a right answer.")
        return StudyMeasure(title or name, about, _contains_answer, needs_answers=True)
    if name == "self_bleu":
        if reason := why_missing("study"):
            raise StudyError(tr("The measure “{name}” is not available.").format(name=name), reason, key="name")
        about = tr("BLEU-4 of a text against the other ones of its prompt; high if all are alike.")
        return StudyMeasure(title or name, about, lambda row: None, of_group=_self_bleu_group)
    if name in _PLAIN:
        text, compute, digits = _PLAIN[name]
        return StudyMeasure(title or name, tr(text), compute, digits)
    plugin = plugin_measures.registry[name]
    return StudyMeasure(
        title or name, tr(plugin.help), lambda row: row.get("measures", {}).get(plugin.name), plugin.digits
    )


def _log_probability(judge: str, title: str | None) -> StudyMeasure:
    if not judge:
        about = tr("Mean natural log-probability per token under the model alone, before any setting.")
        return StudyMeasure(title or "log_probability", about, _stored("log_probability"))
    about = tr("Mean natural log-probability per token under {model}, before any setting.").format(model=judge)
    return StudyMeasure(
        title or f"log_probability[{judge}]", about, lambda row: row.get("judged", {}).get(judge), judge=judge
    )


def _repetition(n: object, title: str | None) -> StudyMeasure:
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= 100:
        raise StudyError(
            tr("The value is {value}.").format(value=short_repr(n)), tr("Write a whole number from 1 to 100."), key="n"
        )
    length = n

    def compute(row: Row) -> float | None:
        share = distinct(row["ids"], length)
        return None if share is None else 1.0 - share

    about = tr("Fraction of the passages of {count} tokens that occurred earlier in the text.").format(count=length)
    return StudyMeasure(title or ("repetition" if length == 4 else f"repetition_{length}"), about, compute)


def _regex(table: Mapping[str, Any], title: str | None) -> StudyMeasure:
    if "pattern" not in table:
        raise StudyError(tr("It has no pattern."), tr('Add pattern = "…".'), key="name")
    try:
        pattern = re.compile(table["pattern"])
    except re.error as error:
        raise StudyError(
            tr("The regular expression is invalid: {reason}.").format(reason=error), tr("Correct it."), key="pattern"
        ) from None
    about = tr("1 if the text contains a match of {pattern}.").format(pattern=pattern.pattern)
    return StudyMeasure(title or "regex", about, lambda row: float(pattern.search(row["text"]) is not None))
