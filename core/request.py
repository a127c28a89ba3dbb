"""What to decode, and how: the one thing a run starts from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.common.setting_values import to_plain_value
from core.errors import ParameterError
from core.parameter import Settings, short_repr
from resources.language import tr

if TYPE_CHECKING:
    from transformers import GenerationConfig

    from core.models.loaded_model import LoadedModel

Messages = Sequence[Mapping[str, str]]
"""A chat: `{"role": "user" | "assistant" | "system", "content": text}` in order."""


@dataclass(frozen=True, slots=True)
class Request:
    """One run.

    `config` is transformers' own class; its flags decide the strategy unless `strategy` names one of
    `core.strategies.registry`, whose own settings go into `options`. `prompt` is text, a chat or token ids.
    """

    prompt: str | Messages | Sequence[int]
    config: GenerationConfig | Settings | None = None
    """Or the same settings by name: a request in plain values can be made without transformers, kept and sent."""
    strategy: str | None = None
    options: Settings = field(default_factory=dict)
    cache: str = "dynamic"
    cache_options: Settings = field(default_factory=dict)
    drafters: Sequence[LoadedModel] = ()
    """Draft models. `core.stream(…, drafters=)` takes them beside the request, which then is plain data throughout."""
    top_n: int = 10
    """Alternatives kept for each step; 0 switches the tracing of them off."""
    seed: int = 0
    beginning: str | Sequence[int | str] = ()
    """What the answer begins with: token ids, words, or some of each in order. The run goes on behind them, as if it
    had written them itself: limits (`max_new_tokens`, `max_time`) and the scores of beams count from there, rules on
    places in the answer (`min_new_tokens`, `begin_suppress_tokens`, …) from its own beginning."""
    negative_prompt: str | Sequence[int] | None = None
    """Classifier-free guidance (`guidance_scale`): what to steer away from; default the last prompt token alone."""
    memory_fallback: bool = True
    """When memory ends, go on with the next cheaper cache that writes the same text."""
    steady: bool = False
    """Nothing follows the clock or earlier runs: drafts of `auto` length go by what passes usually cost, so that a
    second run drafts the same tokens too, and not only writes the same."""

    media: Sequence[str | Path] = ()
    """Files of sound or pictures that the model reads beside the prompt, in order (`core.media`); `LoadedModel.takes`
    says what it can read."""

    def __post_init__(self) -> None:
        """Convert numbers of NumPy and torch to Python's own, wherever they stand."""
        for name in _CONVERTED:
            value = getattr(self, name)
            if (converted := to_plain_value(value)) is not value:
                object.__setattr__(self, name, converted)

    def asked(self, setting: str) -> Any:
        """What the request's own configuration says of a setting; None where it leaves it open."""
        return self.given.get(setting)

    @property
    def given(self) -> Settings:
        """The request's own configuration as plain settings by name."""
        if self.config is None or isinstance(self.config, Mapping):
            return self.config or {}
        found: Settings = to_plain_value(vars(self.config))
        return found


_CONVERTED = (
    "prompt", "config", "options", "cache_options", "top_n", "seed", "beginning", "negative_prompt", "memory_fallback",
    "steady",
)  # fmt: skip
"""Fields of a request that may contain numbers."""


def check_request(request: object) -> None:
    """Raises ParameterError for anything else than a `Request`."""
    if not isinstance(request, Request):
        raise ParameterError(
            tr("The request is {value}, and not a decodescope.Request.").format(value=short_repr(request)),
            tr("Make one of what is to be run: decodescope.Request(prompt)."),
        )
