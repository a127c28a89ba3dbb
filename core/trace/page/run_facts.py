"""What a page says of a run as a whole: what was asked for, and what it took."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from core.events import Finished, Metrics, RunStarted, TokenChosen
from core.explain.words import decimal, duration, rate, size, whole_percent
from core.setting_titles import SCORED, cache_title, setting_title, strategy_title
from resources.language import tr, trc

Facts = list[tuple[str, str]]
__all__ = ["SCORED", "Facts", "made", "metrics", "settings", "strategy_title"]


def settings(started: RunStarted | None) -> Facts:
    """What the run was made with, every value written out."""
    if started is None:
        return []
    second = [(tr("Second model"), started.second)] if started.second else []
    heads = [(tr("Model"), started.model), *second, (tr("Strategy"), strategy_title(started)),
             (tr("Device"), f"{started.device}, {started.engine or started.dtype}")]  # fmt: skip
    if started.strategy != SCORED:
        heads += [] if started.engine else [(tr("Cache"), cache_title(started))]
        heads += [(tr("Seed"), str(started.seed))]
    return heads + [(setting_title(started, name), _written(value)) for name, value in started.settings]


def made(started: RunStarted | None) -> list[str]:
    """By what, in a line: model, strategy, and the cache and the seed of what is drawn."""
    if started is None:
        return []
    drawn = started.strategy != SCORED
    kept = started.engine or tr("cache {cache}").format(cache=cache_title(started))
    more = [kept, tr("seed {seed}").format(seed=started.seed)]
    return [started.model, strategy_title(started), *(more if drawn else ())]


def metrics(finished: Finished | None, scored: Sequence[TokenChosen] = ()) -> Facts:
    """The run's figures; what it has no number for is left out. `scored`: the tokens of a text that was only scored."""
    if finished is None:
        return []
    told = finished.metrics
    rows: list[tuple[str, str | None]] = [
        (tr("Tokens read"), f"{told.prompt_tokens:,}" if told.prompt_tokens else None),
        (tr("Tokens scored") if scored else tr("Tokens written"), f"{told.new_tokens:,}"),
        *_of_score(scored),
        (tr("Time"), duration(told.seconds)),
        (tr("First token after"), _maybe(duration, told.time_to_first_token)),
        (trc("a rate", "Reading"), _maybe(rate, told.prefill_tokens_per_second)),
        (trc("a rate", "Writing"), _maybe(rate, told.decode_tokens_per_second)),
        (tr("Passes of the model"), f"{told.target_passes:,}" if told.target_passes else None),
        *_of_drafts(told),
        (tr("Cache at the end"), _maybe(size, told.cache_bytes or None)),
        (tr("Cache at most"), _maybe(size, told.cache_peak_bytes or None)),
        (tr("Memory in all"), _maybe(size, told.peak_memory_bytes)),
    ]
    return [(name, value) for name, value in rows if value is not None]


def _of_score(scored: Sequence[TokenChosen]) -> list[tuple[str, str | None]]:
    """How well the model foretells a text."""
    if not scored:
        return []
    mean = sum(token.raw_log_probability for token in scored) / len(scored)
    perplexity = math.exp(min(-mean, 700.0))
    return [
        (tr("Mean log-probability"), decimal(mean)),
        (tr("Perplexity"), f"{perplexity:,.{0 if perplexity >= 100 else 1}f}"),
    ]


def _of_drafts(told: Metrics) -> list[tuple[str, str | None]]:
    several = told.tokens_per_target_pass is not None and told.acceptance_rate is not None
    return [
        (tr("Tokens a pass"), f"{told.tokens_per_target_pass:.2f}" if several else None),
        (tr("Drafts accepted"), _maybe(whole_percent, told.acceptance_rate)),
    ]


def _maybe(tell: Callable[[float], str], value: float | None) -> str | None:
    return None if value is None else tell(value)


def _written(value: object) -> str:
    if isinstance(value, bool):
        return tr("on") if value else tr("off")
    if isinstance(value, (list, tuple)):
        return ", ".join(_written(item) for item in value)
    return f"{value:g}".replace("-", "−") if isinstance(value, float) else str(value)
