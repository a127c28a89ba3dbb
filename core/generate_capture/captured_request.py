"""The request that describes a captured run: with it, `run` gives the same ids, or says why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decodescope.core import strategies
from decodescope.core.common.hf_generation import DEFAULTS
from decodescope.core.generate_recording.run_writer import plain_settings
from decodescope.core.request import Request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from transformers import GenerationConfig

    from decodescope.core.generate_recording.call_recorder import RunDescription
    from decodescope.core.models.loaded_model import LoadedModel
    from decodescope.core.strategies import Strategy

_NOT_REPEATED = frozenset({"custom_generate", "max_length", "cache_implementation"})
"""Settings of a call that are other parts of a request: the function, and the length in new tokens."""


def captured_request(model: LoadedModel, described: RunDescription, top_n: int) -> Request:
    """Return the request of a captured run: its prompt as ids, so that special tokens are not added again, the settings
    in effect, and the state of the random generator.
    """
    inputs, prompt, origin = described.inputs, described.prompt, described.origin
    config = inputs.config
    strategy = strategies.registry.get(inputs.strategy)
    settings = {name: value for name, value in plain_settings(config).items() if name not in _NOT_REPEATED}
    settings |= _overridden(config, model.generation_config, settings)
    if strategy is not None:
        settings |= _filled_in(strategy, config, settings)
    if "max_new_tokens" not in settings and config.max_length:
        settings["max_new_tokens"] = max(int(config.max_length) - len(prompt.start), 0)
    return Request(
        list(prompt.prompt),
        settings,
        strategy=None if strategy is None else strategy.name,
        top_n=top_n,
        seed=origin.generator.seed,
        generator_state=origin.generator.state,
        beginning=tuple(prompt.beginning),
        call_facts=origin.facts,
    )


def _overridden(config: GenerationConfig, own: GenerationConfig, settings: Mapping[str, object]) -> dict[str, object]:
    """Return library defaults with which the call replaced settings of the model's own generation_config."""
    return {
        name: value
        for name, value in ((name, getattr(config, name, None)) for name in plain_settings(own))
        if name not in settings and name not in _NOT_REPEATED and name in DEFAULTS and value == DEFAULTS[name]
    }


def _filled_in(strategy: Strategy, config: GenerationConfig, settings: Mapping[str, object]) -> dict[str, object]:
    """Return the values that a strategy or the window would fill in otherwise."""
    found = {}
    for parameter in strategy.parameters:
        name = parameter.name
        if parameter.option or name in settings or name in strategy.flags or name == "max_new_tokens":
            continue
        value = getattr(config, name, None)
        value = DEFAULTS.get(name) if value is None else value
        if value is not None and value != strategy.defaults.get(name, parameter.default):
            found[name] = value
    return found
