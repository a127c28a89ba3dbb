"""What a page says of a run as a whole: what was asked for, and what it took."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from core.events import Finished, Metrics, RunStarted, TokenChosen
from core.explain.words import decimal, duration, rate, size, whole_percent
from core.setting_titles import SCORED, cache_title, setting_title, strategy_title
from resources.language import tr, trc

FactRows = list[tuple[str, str]]
__all__ = ["SCORED", "FactRows", "metric_rows", "run_summary", "setting_rows", "strategy_title"]


def setting_rows(started: RunStarted | None) -> FactRows:
    """What the run was made with, every value written out."""
    if started is None:
        return []
    second = [(tr("Second model"), started.second)] if started.second else []
    heads = [(tr("Model"), started.model), *second, (tr("Strategy"), strategy_title(started)),
             (tr("Device"), f"{started.device}, {started.engine or started.dtype}")]  # fmt: skip
    if started.strategy != SCORED:
        heads += [] if started.engine else [(tr("Cache"), cache_title(started))]
        heads += [(tr("Seed"), str(started.seed))]
    return heads + [(setting_title(started, name), _format_value(value)) for name, value in started.settings]


def run_summary(started: RunStarted | None) -> list[str]:
    """By what, in a line: model, strategy, and the cache and the seed of what is drawn."""
    if started is None:
        return []
    drawn = started.strategy != SCORED
    kept = started.engine or tr("cache {cache}").format(cache=cache_title(started))
    more = [kept, tr("seed {seed}").format(seed=started.seed)]
    return [started.model, strategy_title(started), *(more if drawn else ())]


def metric_rows(finished: Finished | None, scored: Sequence[TokenChosen] = ()) -> FactRows:
    """The run's figures; what it has no number for is left out. `scored`: the tokens of a text that was only scored."""
    if finished is None:
        return []
    values = finished.metrics
    rows: list[tuple[str, str | None]] = [
        (tr("Tokens read"), f"{values.prompt_tokens:,}" if values.prompt_tokens else None),
        (tr("Tokens scored") if scored else tr("Tokens written"), f"{values.new_tokens:,}"),
        *_score_rows(scored),
        (tr("Time"), duration(values.seconds)),
        (tr("First token after"), _format_if_known(duration, values.time_to_first_token)),
        (trc("a rate", "Reading"), _format_if_known(rate, values.prefill_tokens_per_second)),
        (trc("a rate", "Writing"), _format_if_known(rate, values.decode_tokens_per_second)),
        (tr("Passes of the model"), f"{values.target_passes:,}" if values.target_passes else None),
        *_draft_rows(values),
        (tr("Cache at the end"), _format_if_known(size, values.cache_bytes or None)),
        (tr("Cache at most"), _format_if_known(size, values.cache_peak_bytes or None)),
        (tr("Memory in all"), _format_if_known(size, values.peak_memory_bytes)),
    ]
    return [(name, value) for name, value in rows if value is not None]


def _score_rows(scored: Sequence[TokenChosen]) -> list[tuple[str, str | None]]:
    """How well the model foretells a text."""
    if not scored:
        return []
    mean = sum(token.raw_log_probability for token in scored) / len(scored)
    perplexity = math.exp(min(-mean, 700.0))
    return [
        (tr("Mean log-probability"), decimal(mean)),
        (tr("Perplexity"), f"{perplexity:,.{0 if perplexity >= 100 else 1}f}"),
    ]


def _draft_rows(told: Metrics) -> list[tuple[str, str | None]]:
    several = told.tokens_per_target_pass is not None and told.acceptance_rate is not None
    return [
        (tr("Tokens a pass"), f"{told.tokens_per_target_pass:.2f}" if several else None),
        (tr("Drafts accepted"), _format_if_known(whole_percent, told.acceptance_rate)),
    ]


def _format_if_known(tell: Callable[[float], str], value: float | None) -> str | None:
    return None if value is None else tell(value)


def _format_value(value: object) -> str:
    if isinstance(value, bool):
        return tr("on") if value else tr("off")
    if isinstance(value, (list, tuple)):
        return ", ".join(_format_value(item) for item in value)
    return f"{value:g}".replace("-", "−") if isinstance(value, float) else str(value)
