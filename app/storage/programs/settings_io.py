"""What reading and writing another program's settings has in common: nothing is lost without being named."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from resources.language import tr

UNLIMITED_RANGE = 1_000_000
"""Tokens to look back that no text has."""
BREAKERS = ("\n", ":", '"', "*")
"""What ends a passage for DRY, here and by default in both programs."""
OFF_VALUES: dict[str, Any] = {
    "repetition_penalty": 1.0, "dry_multiplier": 0.0, "top_n_sigma": None, "top_k": 0, "typical_p": 1.0, "top_p": 1.0,
    "min_p": None, "xtc_probability": 0.0,
}  # fmt: skip
"""Stages that both programs have, and the value by which each does nothing."""
STAGE_OF = {"dry_base": "dry_multiplier", "dry_allowed_length": "dry_multiplier", "dry_range": "dry_multiplier",
            "xtc_threshold": "xtc_probability"}  # fmt: skip
"""The stage that a further setting belongs to: where that is off, the setting means nothing."""


@dataclass(slots=True)
class ForeignSettingsReader:
    """Another program's settings, asked for one by one; what nobody asks for is named in the end."""

    data: Mapping[str, Any]
    defaults: Mapping[str, Any]
    """What the program takes where a file says nothing."""
    values: dict[str, Any] = field(default_factory=dict)
    """Settings here, by their names."""
    unsupported: list[str] = field(default_factory=list)
    """What has no counterpart, a sentence each."""
    _names_read: set[str] = field(default_factory=set)

    def number(self, name: str) -> float:
        """A number of the file's; the program's default where it says none, or nonsense."""
        self._names_read.add(name)
        usual: float = self.defaults[name]
        value = self.data.get(name, usual)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max:
            return value
        if value is not None:
            self.unsupported.append(tr("{name} is no number and was left at {usual:g}.").format(name=name, usual=usual))
        return usual

    def integer(self, name: str) -> int:
        """The same, for what counts something."""
        return int(self.number(name))

    def raw_value(self, name: str) -> Any:
        """Whatever the file says of it; None for nothing."""
        self._names_read.add(name)
        return self.data.get(name)

    def texts(self, name: str) -> list[str]:
        """A list of texts; one text alone is a list of one."""
        value = self.raw_value(name)
        found = [value] if isinstance(value, str) else value
        return [text for text in found if isinstance(text, str) and text] if isinstance(found, list) else []

    def report_unsupported(self, name: str, usual: object) -> None:
        """Name it where it is something else than what switches it off."""
        value = self.raw_value(name)
        if value is not None and value not in (usual, "", [], {}):
            self.unsupported.append(tr("{name} has no counterpart here.").format(name=name))

    def report_unread(self) -> None:
        """Name all that nobody has asked for."""
        rest = [name for name, value in self.data.items() if name not in self._names_read and value is not None]
        if rest:
            self.unsupported.append(tr("Without a counterpart here: {names}.").format(names=", ".join(rest)))


@dataclass(slots=True)
class ForeignSettingsWriter:
    """Settings here as another program's; what it has no word for is named."""

    values: Mapping[str, Any]
    """Every setting that is on here, by its name."""
    data: dict[str, Any] = field(default_factory=dict)
    unsupported: list[str] = field(default_factory=list)
    """Names of settings here that the program takes otherwise, or not at all."""
    _used: set[str] = field(default_factory=set)

    def read(self, name: str, default: Any) -> Any:
        """A setting's value, `default` where it is not set."""
        self._used.add(name)
        value = self.values.get(name)
        return default if value is None else value

    def report_unread(self, is_default: Callable[[str, Any], bool]) -> None:
        """Name what nobody has taken; `is_default` says which values mean nothing."""
        self.unsupported += [
            name for name, value in self.values.items() if name not in self._used and not is_default(name, value)
        ]


@dataclass(frozen=True, slots=True)
class ForeignProgram:
    """Another program whose settings are understood."""

    name: str
    marks: frozenset[str]
    """Names that only its files have."""
    read: Callable[[Mapping[str, Any]], ForeignSettingsReader]
    write: Callable[[ForeignSettingsWriter], None]
    source: str
    """Where its names and defaults are documented."""
    mirostat_note: str
    """What it leaves out where mirostat is on, a marked sentence."""


def read_temperature(found: ForeignSettingsReader, temperature: float, order: Sequence[str]) -> list[str]:
    """Temperature, fixed or moving with the entropy; gives the order with the stage that it is."""
    reach, exponent = found.number("dynatemp_range"), found.number("dynatemp_exponent")
    if temperature <= 0:
        found.values["do_sample"] = False
        return [name for name in order if name != "temperature"]
    if reach <= 0:
        found.values["temperature"] = temperature
        return list(order)
    low = temperature - reach
    if low <= 0:
        low = 0.01
        found.unsupported.append(tr("dynatemp_range reaches down to 0; here it begins at {low:g}.").format(low=low))
    found.values |= {"temperature": 1.0, "dynatemp_low": low, "dynatemp_high": temperature + reach,
                     "dynatemp_exponent": exponent}  # fmt: skip
    return ["dynatemp_high" if name == "temperature" else name for name in order]


def temperature_stage(out: ForeignSettingsWriter) -> str:
    """Which of our two stages is the program's temperature."""
    return "temperature" if out.read("dynatemp_high", None) is None else "dynatemp_high"


def write_temperature(out: ForeignSettingsWriter) -> None:
    """Temperature as both programs have it: the middle of a range, and how far it reaches."""
    temperature, high = float(out.read("temperature", 1.0)), out.read("dynatemp_high", None)
    low, exponent = float(out.read("dynatemp_low", 0.5)), float(out.read("dynatemp_exponent", 1.0))
    if out.read("do_sample", True) is False:
        temperature, high = 0.0, None
    if high is not None:
        if temperature != 1.0:
            out.unsupported.append("temperature")
        temperature = (low + float(high)) / 2
    reach = 0.0 if high is None else (float(high) - low) / 2
    out.data |= {"temperature": temperature, "dynatemp_range": reach, "dynatemp_exponent": exponent}


def read_dry(found: ForeignSettingsReader) -> None:
    """DRY, which both programs name alike; a range of 0 switches it off there, −1 is the whole text."""
    reach = found.integer("dry_penalty_last_n")
    multiplier = found.number("dry_multiplier") if reach else 0.0
    found.values |= {"dry_multiplier": multiplier, "dry_base": found.number("dry_base"),
                     "dry_allowed_length": max(1, found.integer("dry_allowed_length")),
                     "dry_range": reach if 0 < reach < UNLIMITED_RANGE else 0}  # fmt: skip
    breakers = found.raw_value("dry_sequence_breakers")
    if breakers and not (isinstance(breakers, list) and sorted(map(str, breakers)) == sorted(BREAKERS)):
        found.unsupported.append(
            tr("dry_sequence_breakers: here a passage ends at a line break, a colon, a quote, a star.")
        )


def write_dry(out: ForeignSettingsWriter, unlimited: int) -> None:
    """DRY; `unlimited` is how the program says “the whole text”."""
    out.data |= {
        "dry_multiplier": out.read("dry_multiplier", 0.0), "dry_base": out.read("dry_base", 1.75),
        "dry_allowed_length": out.read("dry_allowed_length", 2),
        "dry_penalty_last_n": out.read("dry_range", 0) or unlimited,
    }  # fmt: skip


def read_mirostat(
    found: ForeignSettingsReader, ignored: Collection[str], replacements: Mapping[str, Any], note: str
) -> bool:
    """Mirostat, and whether it is on. The program then ignores some of what the file says: that is off from here on.

    `replacements` says so in the program's own words, and `note`, a marked sentence, to the reader.
    """
    mode = found.integer("mirostat")
    tau, eta = found.number("mirostat_tau"), found.number("mirostat_eta")
    if mode not in (1, 2):
        found.unsupported += [tr("mirostat {mode} has no counterpart here.").format(mode=mode)] if mode else []
        return False
    found.data = {**{name: value for name, value in found.data.items() if name not in ignored}, **replacements}
    found.values |= {"mirostat_tau": tau, "mirostat_eta": eta}
    found.unsupported += [tr("mirostat 1 has no counterpart here; mirostat 2 takes its place.")] if mode == 1 else []
    found.unsupported += mirostat_notes(note)
    return True


def mirostat_notes(note: str) -> tuple[str, str]:
    """What a program leaves out beside mirostat (`note`, a marked sentence), and how its cut moves otherwise than ours:
    both take the drawn token's share of what the cut has left, Basu et al. (2021) its probability before the cut."""
    moved = tr(
        "After every token its limit moves by that token's surprise among the tokens kept; here, by its surprise "
        "before the cut."
    )
    return tr(note), moved


def write_mirostat(out: ForeignSettingsWriter) -> None:
    """Mirostat 2 where it is on; neither program moves its cut as it moves here."""
    tau, eta = out.read("mirostat_tau", None), out.read("mirostat_eta", 0.1)
    out.unsupported += [] if tau is None else ["mirostat_tau"]
    out.data |= {"mirostat": 0 if tau is None else 2, "mirostat_tau": 5.0 if tau is None else tau, "mirostat_eta": eta}


def read_penalty(found: ForeignSettingsReader, name: str, reach_name: str) -> None:
    """The penalty for repetition; here it looks at the whole text."""
    penalty, reach = found.number(name), found.integer(reach_name)
    found.values["repetition_penalty"] = penalty if reach else 1.0
    if penalty != 1.0 and 0 < reach < UNLIMITED_RANGE:
        template = tr("{name} is {reach:,}: here the penalty looks at the whole text.")
        found.unsupported.append(template.format(name=reach_name, reach=reach))


def positive_or_none(value: float) -> float | None:
    """None for what a program switches off by 0 or less."""
    return value if value > 0 else None


def set_stage_order(found: ForeignSettingsReader, order: Iterable[str]) -> None:
    """The order of the stages, as the option `stages` has it."""
    found.values["stages"] = list(dict.fromkeys(order))
