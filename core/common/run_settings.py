"""All settings of a run in one mapping, each with its source. Imports no torch."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from decodescope.core.common.hf_generation import generation_fields, to_generation_config

if TYPE_CHECKING:
    from transformers import GenerationConfig

Source = Literal["flags", "request", "strategy", "model", "library"]
"""Source of a value, by precedence: the flags of a named strategy, the request, the defaults of a named strategy, the
model's generation_config, the defaults of the library.
"""


class RunSettings(dict[str, Any]):
    """The settings of a run by name: fields of GenerationConfig and options of strategies and stages.

    `layers`: the settings of each source, highest precedence first. A value of None leaves the setting to the next
    source, except among flags. `extras`: values of configurations that are not settings of a run, such as the language
    table of a speech model; only `config` contains them. Created by `core.settings`, and not changed afterwards.
    """

    def __init__(self, layers: Mapping[Source, Mapping[str, object]], extras: Mapping[str, object]) -> None:
        super().__init__()
        self._extras = extras
        self.ignored: Mapping[str, str] = {}
        """Reasons, as sentences, why values of the model's generation_config are left out, by setting."""
        self._sources: dict[str, Source] = {}
        for source, settings in layers.items():
            for name, value in settings.items():
                if name not in self and (value is not None or source == "flags"):
                    self[name], self._sources[name] = value, source

    def from_sources(self, *sources: Source) -> dict[str, Any]:
        """Return the settings whose value comes from one of these sources."""
        return {name: value for name, value in self.items() if self._sources.get(name) in sources}

    @cached_property
    def config(self) -> GenerationConfig:
        """The settings without options as transformers' own class, for transformers and plug-ins."""
        known = generation_fields()
        fields = {name: value for name, value in self.items() if name in known}
        return to_generation_config({**self._extras, **fields})
