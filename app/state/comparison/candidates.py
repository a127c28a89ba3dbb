"""What can be compared: each one a run to be made, a run that is there already, or the reason why neither can be."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.state import setting_values
from app.state.run import Run
from app.state.setting_values import InvalidValueError, is_number
from app.state.worker_messages import GRAMMAR, LoadRequest, ModelInfo, RunRequest, split_settings
from core import ModelEntry, beginning, caches, catalog, strategies
from core.caches import Variant
from core.strategies import Parameter, Strategy
from resources.language import tr

_MAX_INITIAL_MODELS = 3
"""Chosen at first, the one of the shown run included."""
_MAX_INITIAL_RUNS = 4
"""Chosen at first: the latest ones."""


@dataclass(frozen=True, slots=True)
class ComparisonCandidate:
    """One member of a comparison, or of the choice of them."""

    key: str
    title: str
    summary: str
    request: RunRequest
    reason: str = ""
    """Why it cannot be run; empty when it can."""
    chosen: bool = True
    """Whether it is compared unless the reader says otherwise."""
    run: Run | None = None
    """The run itself, where it was made before."""
    index: int = 0
    """In a sweep, the place of its value among the values."""
    short_title: str = ""
    """A name that fits beside a bar, where the title does not."""

    @property
    def short(self) -> str:
        """A name that fits beside a bar."""
        return self.short_title or self.title


def cache_candidates(base: RunRequest, info: ModelInfo | None) -> list[ComparisonCandidate]:
    """Every back end, dynamic first; the quantized one in several widths."""
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
    """Why a back end cannot serve; empty when it can, as far as is known before it is tried."""
    if info is not None and name in info.unsupported_caches:
        return info.unsupported_caches[name]
    known = strategies.registry.get(strategy)  # a recorded run may have one that is not here
    return (caches.registry[name].missing_operation_reason(known.needs) or "") if known is not None else ""


def strategy_candidates(base: RunRequest, info: ModelInfo | None) -> list[ComparisonCandidate]:
    """Every strategy with its own defaults and the common settings of `base`; the run's own first, as it was."""
    found = []
    for name, strategy in strategies.registry.items():
        own = name == base.strategy
        request = base if own else base.with_strategy(strategy, _strategy_settings(strategy, base.settings))
        chosen = own or strategy.compared
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
    """Its defaults, and what it shares with the shown run."""
    params = {p.name: strategy.defaults.get(p.name, p.default) for p in strategy.parameters}
    shared = {name: value for name, value in settings.items() if name in params and name not in strategy.defaults}
    return {name: value for name, value in {**params, **shared}.items() if value is not None}


def _strategy_unsupported_reason(strategy: Strategy, base: RunRequest, info: ModelInfo | None) -> str:
    if info is not None and strategy.name in info.unsupported_strategies:
        return info.unsupported_strategies[strategy.name]
    if strategy.takes_drafters and not base.draft_names:
        return tr("needs a draft model; choose one with Assisted decoding first.")
    if strategy.wants and base.strategy != strategy.name:
        return tr("needs “{setting}”; run it once with some.").format(
            setting=tr(strategy.parameter(strategy.wants[0]).title)
        )
    return cache_unsupported_reason(base.cache, strategy.name, info)


def seed_candidates(base: RunRequest, count: int) -> list[ComparisonCandidate]:
    """The run's own seed and those after it."""
    seeds = range(base.seed, base.seed + count)
    return [
        ComparisonCandidate(f"seed-{seed}", tr("Seed {seed}").format(seed=seed), "", replace(base, seed=seed))
        for seed in seeds
    ]


def seeds_unsupported_reason(request: RunRequest) -> str:
    """Why seeds make no difference to a run; empty where they do."""
    strategy = strategies.registry[request.strategy]
    if request.settings.get("do_sample") or strategy.flags.get("do_sample"):
        return ""
    return tr("{title} rolls no dice as it is set: every seed writes the same text.").format(title=tr(strategy.title))


def grammar_candidates(base: RunRequest) -> list[ComparisonCandidate]:
    """The run as it was, and the same without its grammar; nothing where it has none."""
    if not base.grammar:
        return []
    free = replace(base, options={name: value for name, value in base.options.items() if name != GRAMMAR})
    return [
        ComparisonCandidate("with-grammar", tr("With the grammar"), tr("As it was."), base),
        ComparisonCandidate("without-grammar", tr("Without it"), tr("The same prompt, seed and settings."), free),
    ]


def model_candidates(base: RunRequest, entries: Sequence[ModelEntry]) -> list[ComparisonCandidate]:
    """Every model that is listed, the run's own first; a model is loaded only when its turn comes."""
    own = next((entry for entry in entries if entry.name == base.model), None)
    ordered = sorted(entries, key=lambda entry: entry.name != base.model)
    found = [_model_candidate(base, entry, _accepts_same_prompt(entry, own)) for entry in ordered]
    usual = [candidate.key for candidate in found if candidate.chosen and not candidate.reason][:_MAX_INITIAL_MODELS]
    return [replace(candidate, chosen=candidate.key in usual) for candidate in found]


def _model_candidate(base: RunRequest, entry: ModelEntry, is_like: bool) -> ComparisonCandidate:
    load = base.load if entry.name == base.model else _load_request_for(base.load, entry.name)
    fit = catalog.fits(entry)
    reason = entry.problem or ("" if fit.ok else fit.sentence)
    return ComparisonCandidate(entry.name, entry.title, entry.architecture, replace(base, load=load), reason, is_like)


def _load_request_for(load: LoadRequest, name: str) -> LoadRequest:
    """Another model, on the same device and without the permissions that were given to one."""
    return replace(load, model=name, allow_pickle=False, allow_remote_code=False)


def _accepts_same_prompt(entry: ModelEntry, own: ModelEntry | None) -> bool:
    """Whether a prompt for the one is a prompt for the other, with the sounds and pictures that go with it."""
    if own is None:
        return not entry.takes.needs
    return entry.encoder_decoder == own.encoder_decoder and entry.takes == own.takes


def run_candidates(runs: Sequence[Run]) -> list[ComparisonCandidate]:
    """Runs that are there already, the oldest first."""
    last = len(runs) - _MAX_INITIAL_RUNS
    return [_run_candidate(number, run, number > last) for number, run in enumerate(runs, 1)]


def _run_candidate(number: int, run: Run, chosen: bool) -> ComparisonCandidate:
    request, strategy = run.request, strategies.registry.get(run.request.strategy)
    how = tr(strategy.title) if strategy is not None else request.strategy
    title = tr("{number}. {strategy}, seed {seed}").format(number=number, strategy=how, seed=request.seed)
    start = beginning(" ".join(run.sequences[0].text.split()), 60)
    reason = "" if run.outcome is not None and run.sequences[0].tokens else tr("It has written nothing.")
    return ComparisonCandidate(run.id, title, f"{request.model}: {start}…", request, reason, chosen, run)


MAX_RUNS = 400
"""Of one sweep: each keeps its text with all that is known of every token."""
_DIGITS = 6
"""Significant ones of a value between two ends: 0.3, not 0.30000000000000004."""
_KINDS = ("float", "int", "bool", "choice")


@dataclass(frozen=True, slots=True)
class Sweep:
    """What is swept: the values in the order they are drawn, and the seeds that each is run with."""

    parameter: Parameter
    values: tuple[Any, ...]
    seeds: tuple[int, ...]

    @property
    def count(self) -> int:
        """How many runs it takes."""
        return len(self.values) * len(self.seeds)

    @property
    def labels(self) -> tuple[str, ...]:
        """The values as they are said."""
        return tuple(setting_values.short_text(value) for value in self.values)


def sweepable_parameters(request: RunRequest) -> list[Parameter]:
    """What of the run's strategy can be swept: numbers, switches and choices."""
    return [parameter for parameter in strategies.registry[request.strategy].parameters if parameter.kind in _KINDS]


def make_range(parameter: Parameter, low: float, high: float, count: int) -> tuple[Any, ...]:
    """`count` values from `low` to `high`, both included: equal steps, or equal factors where the parameter's slider
    has them; whole numbers once each. Raises ValueProblem where a bound refuses, or there is no way from one to the
    other."""
    for end in (low, high):
        setting_values.check_range(parameter, end)
    if count < 2 or low == high:
        raise InvalidValueError(tr("A range takes two different ends and at least two values."))
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
    """The values written as `0.2, 0.5, 1` (commas, semicolons or spaces between them), each once, in their order.

    Raises ValueProblem for one that the parameter cannot take.
    """
    parts = [part for part in re.split(r"[,;\s]+", text) if part]
    if not parts:
        raise InvalidValueError(tr("No values are given: write some, 0.2 0.5 1."))
    return tuple(dict.fromkeys(setting_values.parse(parameter, part) for part in parts))


def default_range(parameter: Parameter, value: object) -> tuple[float, float]:
    """Where a sweep begins and ends unless somebody says otherwise: what the slider spans, else half and twice."""
    low = parameter.soft_minimum if parameter.soft_minimum is not None else parameter.minimum
    high = parameter.soft_maximum if parameter.soft_maximum is not None else parameter.maximum
    own = float(value) if is_number(value) else 1.0
    low = own / 2 if low is None else low
    high = own * 2 if high is None or not math.isfinite(high) else high
    if parameter.exclusive and low == parameter.minimum:
        low = min(_rounded(low + (high - low) / 10), high)
    return low, max(high, low)


def sweep_unsupported_reason(sweep: Sweep) -> str:
    """Why it cannot be run; empty when it can."""
    if sweep.count > MAX_RUNS:
        return tr("These are {count:,} runs; {most:,} are kept side by side at most.").format(
            count=sweep.count, most=MAX_RUNS
        )
    if len(sweep.values) < 2:
        return tr("There is one value only: a sweep compares at least two.")
    return ""


def sweep_candidates(base: RunRequest, sweep: Sweep) -> list[ComparisonCandidate]:
    """Every value with every seed, value by value."""
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
    """The same run with another value of one setting; None leaves it open."""
    strategy = strategies.registry[base.strategy]
    settings: Mapping[str, Any] = {**base.settings, parameter.name: value}
    config, options = split_settings(strategy, {name: given for name, given in settings.items() if given is not None})
    return replace(base, config=config, options=options)
