"""Candidates of a comparison: each a request to run, an existing run, or the reason why it is unavailable."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from decodescope.app.state import setting_values
from decodescope.app.state.run import Run
from decodescope.app.state.setting_values import InvalidValueError, is_number
from decodescope.app.state.worker_messages import GRAMMAR, LoadRequest, ModelInfo, RunRequest
from decodescope.core import ModelEntry, beginning, caches, catalog, strategies
from decodescope.core.caches import Variant
from decodescope.core.strategies import Parameter, Strategy
from decodescope.resources.language import tr

_MAX_INITIAL_MODELS = 3
"""Number of models selected initially, including that of the shown run."""
_MAX_INITIAL_RUNS = 4
"""Number of runs selected initially: the latest ones."""


@dataclass(frozen=True, slots=True)
class ComparisonCandidate:
    """A candidate or member of a comparison."""

    key: str
    title: str
    summary: str
    request: RunRequest
    reason: str = ""
    """Why it cannot be run; empty if it can."""
    chosen: bool = True
    """Whether it is selected initially."""
    run: Run | None = None
    """The run, if it exists already."""
    index: int = 0
    """In a sweep, the index of its value."""
    short_title: str = ""
    """A short name for charts, used if the title is too long."""

    @property
    def short(self) -> str:
        """A name short enough for charts."""
        return self.short_title or self.title


def cache_candidates(base: RunRequest, info: ModelInfo | None) -> list[ComparisonCandidate]:
    """Return a candidate for every cache backend, dynamic first; the quantized one in several bit widths."""
    found = []
    for name, backend in caches.registry.items():
        reason = cache_unsupported_reason(name, base.strategy, info)
        own = dict(base.cache_options) if base.cache == name else {}
        for variant in backend.variants or (Variant(backend.title, backend.brief),):
            key = "-".join([name, *map(str, variant.options.values())])
            request = replace(base, cache=name, cache_options={**own, **variant.options})
            summary, brief = tr(backend.summary), tr(variant.brief) if variant.brief else ""
            found.append(ComparisonCandidate(key, tr(variant.title), summary, request, reason, short_title=brief))
    return found


def cache_unsupported_reason(name: str, strategy: str, info: ModelInfo | None) -> str:
    """Return why a cache backend cannot be used; empty if it can, as far as known before trying."""
    if info is not None and name in info.unsupported_caches:
        return info.unsupported_caches[name]
    known = strategies.registry.get(strategy)  # a recorded run may use an unknown strategy
    return (caches.registry[name].missing_operation_reason(known.needs) or "") if known is not None else ""


def strategy_candidates(base: RunRequest, info: ModelInfo | None) -> list[ComparisonCandidate]:
    """Return a candidate for every strategy with its own defaults and the shared settings of `base`; the run's own
    strategy first, unchanged.
    """
    found = []
    for name, strategy in strategies.registry.items():
        own = name == base.strategy
        request = base if own else base.with_strategy(strategy, _strategy_settings(strategy, base.settings))
        chosen = own or strategy.is_compared_by_default
        found.append(
            ComparisonCandidate(
                name,
                tr(strategy.title),
                tr(strategy.summary),
                request,
                _strategy_unsupported_reason(strategy, base, info),
                chosen,
            )
        )
    return sorted(found, key=lambda candidate: candidate.key != base.strategy)


def _strategy_settings(strategy: Strategy, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the strategy's defaults, overridden by the settings shared with the shown run."""
    params = {p.name: strategy.defaults.get(p.name, p.default) for p in strategy.parameters}
    shared = {name: value for name, value in settings.items() if name in params and name not in strategy.defaults}
    return {name: value for name, value in {**params, **shared}.items() if value is not None}


def _strategy_unsupported_reason(strategy: Strategy, base: RunRequest, info: ModelInfo | None) -> str:
    if info is not None and strategy.name in info.unsupported_strategies:
        return info.unsupported_strategies[strategy.name]
    if strategy.takes_drafters and not base.draft_names:
        return tr("needs a draft model. Choose one under Assisted decoding first.")
    if strategy.required_settings and base.strategy != strategy.name:
        return tr("needs “{setting}”. Set it and run once.").format(
            setting=tr(strategy.parameter(strategy.required_settings[0]).title)
        )
    return cache_unsupported_reason(base.cache, strategy.name, info)


LOW_TEMPERATURE, HIGH_TEMPERATURE = 0.2, 1.2
"""The two temperatures of the comparison in one click."""


def temperature_candidates(base: RunRequest, info: ModelInfo | None) -> list[ComparisonCandidate]:
    """Return the run at a low and at a high temperature; as plain sampling if its strategy has no temperature."""
    strategy = strategies.registry[base.strategy]
    if "temperature" not in strategy.parameter_names:
        strategy = strategies.registry["sampling"]
        base = base.with_strategy(strategy, _strategy_settings(strategy, base.settings))
    if "do_sample" in strategy.parameter_names:
        base = base.with_settings({"do_sample": True})
    temperature, reason = strategy.parameter("temperature"), _strategy_unsupported_reason(strategy, base, info)
    return [
        replace(candidate, summary=tr("The same prompt, seed and settings."), reason=reason)
        for candidate in sweep_candidates(base, Sweep(temperature, (LOW_TEMPERATURE, HIGH_TEMPERATURE), (base.seed,)))
    ]


def seed_candidates(base: RunRequest, count: int) -> list[ComparisonCandidate]:
    """Return candidates for the run's seed and the following ones."""
    seeds = range(base.seed, base.seed + count)
    return [
        ComparisonCandidate(f"seed-{seed}", tr("Seed {seed}").format(seed=seed), "", replace(base, seed=seed))
        for seed in seeds
    ]


def seeds_unsupported_reason(request: RunRequest) -> str:
    """Return why seeds make no difference to a run; empty if they do."""
    strategy = strategies.registry[request.strategy]
    if request.settings.get("do_sample") or strategy.flags.get("do_sample"):
        return ""
    return tr("{title} does not sample with these settings, so every seed produces the same text.").format(
        title=tr(strategy.title)
    )


def grammar_candidates(base: RunRequest) -> list[ComparisonCandidate]:
    """Return the run with and without its grammar; empty if it has none."""
    if not base.grammar:
        return []
    free = base.with_settings({GRAMMAR: None})
    return [
        ComparisonCandidate("with-grammar", tr("With grammar"), tr("Unchanged."), base),
        ComparisonCandidate("without-grammar", tr("Without grammar"), tr("The same prompt, seed and settings."), free),
    ]


def model_candidates(base: RunRequest, entries: Sequence[ModelEntry]) -> list[ComparisonCandidate]:
    """Return a candidate for every listed model, the run's own first; each is loaded only when its turn comes."""
    own = next((entry for entry in entries if entry.name == base.model), None)
    ordered = sorted(entries, key=lambda entry: entry.name != base.model)
    found = [_model_candidate(base, entry, _accepts_same_prompt(entry, own)) for entry in ordered]
    usual = [candidate.key for candidate in found if candidate.chosen and not candidate.reason]
    if own is not None:  # models of another language or tokenizer come last
        by_name = {entry.name: entry for entry in entries}
        usual.sort(key=lambda name: not catalog.same_tokenizer(by_name[name], own))
    first = set(usual[:_MAX_INITIAL_MODELS])
    return [replace(candidate, chosen=candidate.key in first) for candidate in found]


def _model_candidate(base: RunRequest, entry: ModelEntry, is_like: bool) -> ComparisonCandidate:
    load = base.load if entry.name == base.model else _load_request_for(base.load, entry.name)
    fit = catalog.fits(entry)
    reason = entry.problem or ("" if fit.ok else fit.sentence)
    return ComparisonCandidate(entry.name, entry.title, entry.architecture, replace(base, load=load), reason, is_like)


def _load_request_for(load: LoadRequest, name: str) -> LoadRequest:
    """Return a load request for another model on the same device, without the permissions granted to the first."""
    return replace(load, model=name, allow_pickle=False, allow_remote_code=False)


def _accepts_same_prompt(entry: ModelEntry, own: ModelEntry | None) -> bool:
    """Return whether the two models accept the same prompt, including its media."""
    if own is None:
        return not entry.modalities.needs
    return entry.encoder_decoder == own.encoder_decoder and entry.modalities == own.modalities


def run_candidates(runs: Sequence[Run]) -> list[ComparisonCandidate]:
    """Return candidates for existing runs, the oldest first."""
    last = len(runs) - _MAX_INITIAL_RUNS
    return [_run_candidate(number, run, number > last) for number, run in enumerate(runs, 1)]


def _run_candidate(number: int, run: Run, chosen: bool) -> ComparisonCandidate:
    request, strategy = run.request, strategies.registry.get(run.request.strategy)
    how = tr(strategy.title) if strategy is not None else request.strategy
    title = tr("{number}. {strategy}, seed {seed}").format(number=number, strategy=how, seed=request.seed)
    start = beginning(" ".join(run.sequences[0].text.split()), 60)
    reason = "" if run.outcome is not None and run.sequences[0].tokens else tr("The run is empty.")
    return ComparisonCandidate(run.id, title, f"{request.model}: {start}…", request, reason, chosen, run)


MAX_RUNS = 400
"""Largest number of runs of a sweep; each keeps its text with the details of every token."""
_DIGITS = 6
"""Significant digits of interpolated values: 0.3, not 0.30000000000000004."""
_KINDS = ("float", "int", "bool", "choice")


@dataclass(frozen=True, slots=True)
class Sweep:
    """The swept parameter, its values in drawing order, and the seeds that each value is run with."""

    parameter: Parameter
    values: tuple[Any, ...]
    seeds: tuple[int, ...]

    @property
    def count(self) -> int:
        """Number of runs."""
        return len(self.values) * len(self.seeds)

    @property
    def labels(self) -> tuple[str, ...]:
        """The values as text."""
        return tuple(setting_values.short_text(value) for value in self.values)


def sweepable_parameters(request: RunRequest) -> list[Parameter]:
    """Return the parameters of the run's strategy that can be swept: numbers, switches and choices."""
    return [parameter for parameter in strategies.registry[request.strategy].parameters if parameter.kind in _KINDS]


def make_range(parameter: Parameter, low: float, high: float, count: int) -> tuple[Any, ...]:
    """Return `count` values from `low` to `high`, both included: evenly spaced, or by equal factors if the parameter's
    slider is logarithmic; each integer once.

    Raises InvalidValueError if a bound is invalid or the range is empty.
    """
    for end in (low, high):
        setting_values.check_range(parameter, end)
    if count < 2 or low == high:
        raise InvalidValueError(tr("A range needs two different ends and at least two values."))
    if parameter.logarithmic and low > 0 and high > 0:
        found = [low * (high / low) ** (step / (count - 1)) for step in range(count)]
    else:
        found = [low + (high - low) * step / (count - 1) for step in range(count)]
    if parameter.kind == "int":
        return tuple(dict.fromkeys(round(value) for value in found))
    return tuple(dict.fromkeys(_rounded(value) for value in found))


def _rounded(value: float) -> float:
    return float(f"{value:.{_DIGITS}g}")


def parse_values(parameter: Parameter, text: str) -> tuple[Any, ...]:
    """Parse values like `0.2, 0.5, 1`, separated by commas, semicolons or spaces; each once, in their order.

    Raises InvalidValueError for an invalid value.
    """
    parts = [part for part in re.split(r"[,;\s]+", text) if part]
    if not parts:
        raise InvalidValueError(tr("No values given. Enter some, e.g. 0.2 0.5 1."))
    return tuple(dict.fromkeys(setting_values.parse(parameter, part) for part in parts))


def default_range(parameter: Parameter, value: object) -> tuple[float, float]:
    """Return the default range of a sweep: that of the slider, else half and twice the current value."""
    low = parameter.soft_minimum if parameter.soft_minimum is not None else parameter.minimum
    high = parameter.soft_maximum if parameter.soft_maximum is not None else parameter.maximum
    own = float(value) if is_number(value) else 1.0
    low = own / 2 if low is None else low
    high = own * 2 if high is None or not math.isfinite(high) else high
    if parameter.exclusive and low == parameter.minimum:
        low = min(_rounded(low + (high - low) / 10), high)
    return low, max(high, low)


def sweep_unsupported_reason(sweep: Sweep) -> str:
    """Return why the sweep cannot be run; empty if it can."""
    if sweep.count > MAX_RUNS:
        return tr("This sweep has {count:,} runs; the maximum is {most:,}.").format(count=sweep.count, most=MAX_RUNS)
    if len(sweep.values) < 2:
        return tr("Only one value given. A sweep needs at least two.")
    return ""


def sweep_candidates(base: RunRequest, sweep: Sweep) -> list[ComparisonCandidate]:
    """Return a candidate for every value with every seed, value by value."""
    title, several = tr(sweep.parameter.title), len(sweep.seeds) > 1
    return [
        ComparisonCandidate(
            f"{label}-{seed}",
            (tr("{title} {label}, seed {seed}") if several else "{title} {label}").format(
                title=title, label=label, seed=seed
            ),
            "",
            replace(with_setting(base, sweep.parameter, value), seed=seed), index=place,
        )
        for place, (value, label) in enumerate(zip(sweep.values, sweep.labels, strict=True))
        for seed in sweep.seeds
    ]  # fmt: skip


def with_setting(base: RunRequest, parameter: Parameter, value: object) -> RunRequest:
    """Return the request with another value of one setting; None leaves it unset."""
    return base.with_settings({parameter.name: value})
