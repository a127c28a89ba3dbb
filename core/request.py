"""A request: what to generate, and how."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from decodescope.core.common.hf_generation import KNOWN_FIELDS
from decodescope.core.common.setting_values import to_plain_value
from decodescope.core.errors import ParameterError
from decodescope.core.parameter import Settings, short_repr
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from transformers import GenerationConfig

    from decodescope.core.events import CallFacts
    from decodescope.core.models.adapters.adapter_choice import AdapterSource
    from decodescope.core.models.loaded_model import LoadedModel

Messages = Sequence[Mapping[str, str]]
"""A chat: `{"role": "user" | "assistant" | "system", "content": text}` in order."""


@dataclass(frozen=True, slots=True)
class Request:
    """The request of one run.

    `config` is transformers' own class or a mapping of settings by name; its flags select the strategy unless
    `strategy` names one of `core.strategies.registry`. Settings that GenerationConfig does not have are `options`; a
    mapping may contain them too. `prompt` is text, a chat or token ids.
    """

    prompt: str | Messages | Sequence[int]
    config: GenerationConfig | Settings | None = None
    """Or the same settings by name: a request of plain values can be created without transformers, stored and sent."""
    strategy: str | None = None
    options: Settings = field(default_factory=dict)
    cache: str = "dynamic"
    cache_options: Settings = field(default_factory=dict)
    drafters: Sequence[LoadedModel] = ()
    """Draft models. `core.stream(…, drafters=)` accepts them separately, so that the request consists of plain data."""
    top_n: int = 10
    """Number of alternatives traced per step; 0 turns tracing off."""
    seed: int = 0
    beginning: str | Sequence[int | str] = ()
    """Beginning of the answer: token ids, text, or a mixture. The run continues from it as if it had generated it:
    limits (`max_new_tokens`, `max_time`) and beam scores count from its end, rules on positions in the answer
    (`min_new_tokens`, `begin_suppress_tokens`, …) from its start.
    """
    negative_prompt: str | Sequence[int] | None = None
    """Classifier-free guidance (`guidance_scale`): the negative prompt; by default only the last prompt token."""
    memory_fallback: bool = True
    """If memory runs out, continue with the next cheaper cache that generates the same text."""
    steady: bool = False
    """Make runs independent of timing and earlier runs: `auto` draft lengths use typical costs, so that a second run
    also drafts the same tokens.
    """

    media: Sequence[str | Path] = ()
    """Sound or picture files for the model, in order (`core.media`); `LoadedModel.modalities` lists the supported
    kinds.
    """

    generator_state: str = ""
    """State of the random generator before the first draw, in place of `seed`, as a captured run records it."""
    call_facts: Sequence[tuple[str, str]] = ()
    """What a captured call used that a request cannot contain (`core.events.CallFacts`). A run refuses own processors,
    criteria, functions, draft models and inputs, and emits a notice about what may change the text. Replace it by () to
    run without them.
    """

    adapters: Sequence[AdapterSource] | None = None
    """LoRA adapters of this run, each a path or a pair of a path and a strength; () for none. None: those that the
    model uses anyway (`core.load(…, adapters=)`).
    """

    def __post_init__(self) -> None:
        """Convert NumPy and torch numbers to Python's own, and move options from a mapping of settings to `options`."""
        for name in _CONVERTED:
            value = getattr(self, name)
            if (converted := to_plain_value(value)) is not value:
                object.__setattr__(self, name, converted)
        if isinstance(self.config, Mapping):
            self._move_options(self.config, self.options)

    def _move_options(self, config: Mapping[Any, object], options: object) -> None:
        """Move settings without a field in GenerationConfig from `config` to the options, whose values win."""
        own = {name: value for name, value in config.items() if isinstance(name, str) and name not in KNOWN_FIELDS}
        if own and isinstance(options, Mapping):
            object.__setattr__(self, "config", {name: value for name, value in config.items() if name not in own})
            object.__setattr__(self, "options", {**own, **options})

    def __repr__(self) -> str:
        """Return the fields that are set, shortened to one line."""
        shown = []
        for one in fields(self):
            value = getattr(self, one.name)
            usual = one.default if one.default_factory is MISSING else one.default_factory()
            if one.name == "prompt" or not (type(value) is type(usual) and value == usual):
                shown.append(f"{one.name}={_cut(short_repr(value), _MAX_SHOWN_FIELD)}")
        return _cut(f"{type(self).__name__}({', '.join(shown)})", _MAX_REPR)

    @property
    def settings(self) -> Settings:
        """The settings of the request by name: its configuration and its options."""
        config = {} if self.config is None else self.config
        held = config if isinstance(config, Mapping) else to_plain_value(vars(config))
        return {**held, **self.options}

    def with_settings(self, changes: Settings) -> Self:
        """Return the request with these settings changed; None leaves one to the defaults."""
        if self.config is None or isinstance(self.config, Mapping):
            held = {**self.settings, **changes}
            return replace(self, config={name: held[name] for name in held if held[name] is not None}, options={})
        config = copy.copy(self.config)
        own = {name: value for name, value in changes.items() if name not in KNOWN_FIELDS}
        vars(config).update({name: value for name, value in changes.items() if name not in own})
        return replace(self, config=config, options={**self.options, **own})


_MAX_SHOWN_FIELD, _MAX_REPR = 60, 300


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


_CONVERTED = (
    "prompt", "config", "options", "cache_options", "top_n", "seed", "beginning", "negative_prompt", "memory_fallback",
    "steady",
)  # fmt: skip
"""Fields of a request that may contain numbers."""


def captured_facts(request: Request) -> CallFacts:
    """Return what a captured call used that its request does not contain. Raises ParameterError for other values."""
    given: object = request.call_facts
    facts = list(given) if isinstance(given, Sequence) and not isinstance(given, str | bytes) else [given]
    found = [tuple(fact) for fact in facts if isinstance(fact, list | tuple) and len(fact) == 2]
    if len(found) < len(facts) or not all(isinstance(one, str) for fact in found for one in fact):
        raise ParameterError(
            tr("The facts of the captured call are {value}.").format(value=short_repr(given)),
            tr("Pass pairs of a kind and a name, as captured requests contain, or ()."),
            "call_facts",
        )
    return tuple((kind, name) for kind, name in found)


def check_request(request: object) -> None:
    """Raise ParameterError for anything other than a `Request`."""
    if not isinstance(request, Request):
        raise ParameterError(
            tr("The request is {value}, not a decodescope.Request.").format(value=short_repr(request)),
            tr("Create a request first: decodescope.Request(prompt)."),
        )
