"""What a configuration's flags say of the way to decode: transformers' rule, as plain facts. Knows no torch.

Each strategy says in its own file which flags mean it (`Strategy.selects`); for any flags exactly one does.
"""

from __future__ import annotations

from typing import NamedTuple

from core.defaults import DEFAULTS
from core.parameter import Parameter, Settings, check

_COUNTS = tuple(Parameter(name, name, "int", DEFAULTS[name], "") for name in ("num_beams", "num_beam_groups", "top_k"))
_ALPHA = Parameter("penalty_alpha", "penalty_alpha", "float", 0.0, "")


class Flags(NamedTuple):
    """The settings that decide; made by `flags_of`."""

    beams: bool = False
    groups: bool = False
    samples: bool = False
    forced: bool = False
    """Words that the text must contain."""
    contrasts: bool = False
    """A degeneration penalty, and candidates to compare."""
    layers: bool = False
    """Layers to contrast with (DoLa)."""
    drafters: bool = False
    lookup: bool = False
    early_exit: bool = False
    heads: bool = False
    """The model's own heads for several tokens (MTP)."""

    @property
    def searches(self) -> bool:
        """Beams without words that are forced."""
        return self.beams and not self.forced

    @property
    def single(self) -> bool:
        """One token after the other, greedily or by dice; what else is asked for comes on top of that."""
        return not (self.beams or self.forced or (self.contrasts and not self.samples))

    @property
    def plain(self) -> bool:
        """Nothing on top of it."""
        return self.single and not (self.drafters or self.lookup or self.early_exit or self.heads or self.layers)


def flags_of(settings: Settings, drafters: bool = False) -> Flags:
    """The flags among plain settings by GenerationConfig's names; what is missing or None has its default.

    Raises ParameterError for a count that is no number.
    """

    def value(parameter: Parameter) -> float:
        given: float | None = settings.get(parameter.name)
        if given is not None:
            check(parameter, given)
            return given
        default: float = parameter.default
        return default

    beams, groups, top_k = (value(parameter) for parameter in _COUNTS)
    return Flags(
        beams=(beams or 1) != 1,
        groups=groups > 1,
        samples=bool(settings.get("do_sample")),
        forced=any(settings.get(name) is not None for name in ("constraints", "force_words_ids")),
        contrasts=top_k > 1 and value(_ALPHA) > 0,
        layers=settings.get("dola_layers") is not None,
        drafters=drafters,
        lookup=settings.get("prompt_lookup_num_tokens") is not None,
        early_exit=settings.get("assistant_early_exit") is not None,
        heads=bool(settings.get("use_mtp")),
    )
