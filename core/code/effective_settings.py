"""What a script has to say of a run's settings: only those that would be otherwise if it said nothing."""

from __future__ import annotations

from dataclasses import dataclass

from core import strategies
from core.code.script_model import ScriptModel
from core.defaults import DEFAULTS
from core.generation_fields import METADATA_FIELDS, WITHOUT_EFFECT
from core.parameter import Parameter, Settings
from core.request import Request
from core.strategies.base import Strategy


@dataclass(frozen=True, slots=True)
class EffectiveSettings:
    """A request's strategy and settings, as far as they matter."""

    strategy: Strategy
    settings: Settings
    """All that hold, by name: the strategy's, then the request's; what the model brings is not among them."""
    samples: bool


def effective_settings(request: Request, source: ScriptModel, drafts: bool) -> EffectiveSettings:
    """Reads a request as `core.run` does. Raises StrategyError, ParameterError for what no run could have."""
    given = {
        name: value
        for name, value in request.given.items()
        if value is not None and name not in METADATA_FIELDS | WITHOUT_EFFECT.keys()
    }
    if request.strategy is None:
        filled = {**DEFAULTS, **source.generation_config, **given}
        strategy = strategies.selected_by(strategies.flags_of(filled, drafts))
        settings = given
    else:
        strategy = strategies.named(request.strategy)
        settings = {**strategy.defaults, **given, **strategy.flags}
    samples = bool(settings.get("do_sample", source.generation_config.get("do_sample", False)))
    idle = settings_without_effect(strategy, samples, settings)
    return EffectiveSettings(strategy, {name: value for name, value in settings.items() if name not in idle}, samples)


def differing_settings(settings: Settings, *defaults: Settings) -> dict[str, object]:
    """What of `settings` is another value than the first of `defaults` that knows its name has."""
    missing = object()
    return {
        name: value
        for name, value in settings.items()
        if value is not None
        and value != next((known[name] for known in defaults if known.get(name) is not None), missing)
    }


def changed_options(parameters: tuple[Parameter, ...], options: Settings) -> dict[str, object]:
    """The options that are not as their parameters have them."""
    defaults = {parameter.name: parameter.default for parameter in parameters}
    return {name: value for name, value in options.items() if value is not None and value != defaults.get(name)}


def settings_without_effect(strategy: Strategy, samples: bool, settings: Settings) -> set[str]:
    """Return the settings of sampling where nothing is sampled, and num_return_sequences for greedy decoding."""
    if samples:
        return set()
    own = {parameter.name for parameter in strategy.parameters if parameter not in strategies.of_dice()}
    idle = {parameter.name for parameter in strategies.of_dice()} - own
    return idle if (settings.get("num_beams") or 1) > 1 else {*idle, "num_return_sequences"}
