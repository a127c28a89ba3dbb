"""Shared parts of reading and writing other programs' settings. Every setting that cannot be converted is reported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from decodescope.resources.language import join_names, tr

UNLIMITED_RANGE = 1_000_000
"""A token range longer than any text."""
BREAKERS = ("\n", ":", '"', "*")
"""Sequence breakers of DRY, here and by default in both programs."""
OFF_VALUES: dict[str, Any] = {
    "repetition_penalty": 1.0, "dry_multiplier": 0.0, "top_n_sigma": None, "top_k": 0, "typical_p": 1.0, "top_p": 1.0,
    "min_p": None, "xtc_probability": 0.0, "frequency_penalty": 0.0, "presence_penalty": 0.0,
}  # fmt: skip
"""Stages that both programs have, with the value at which each has no effect."""
STAGE_OF = {"dry_base": "dry_multiplier", "dry_allowed_length": "dry_multiplier", "dry_range": "dry_multiplier",
            "xtc_threshold": "xtc_probability"}  # fmt: skip
"""Maps a setting to the stage it belongs to: it has no effect while that stage is off."""


@dataclass(slots=True)
class ForeignSettingsReader:
    """Reads another program's settings one by one; `report_unread` reports those never read."""

    data: Mapping[str, Any]
    defaults: Mapping[str, Any]
    """The program's defaults for settings missing from a file."""
    values: dict[str, Any] = field(default_factory=dict)
    """The converted settings, by their names here."""
    unsupported: list[str] = field(default_factory=list)
    """One sentence for each setting without a counterpart."""
    _names_read: set[str] = field(default_factory=set)

    def number(self, name: str) -> float:
        """Return a number from the file; the program's default if it is missing or invalid."""
        self._names_read.add(name)
        usual: float = self.defaults[name]
        value = self.data.get(name, usual)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max:
            return value
        if value is not None:
            self.unsupported.append(
                tr("{name} is not a number and was left at {usual:g}.").format(name=name, usual=usual)
            )
        return usual

    def integer(self, name: str) -> int:
        """Return a number as an integer."""
        return int(self.number(name))

    def raw_value(self, name: str) -> Any:
        """Return the raw value in the file, or None."""
        self._names_read.add(name)
        return self.data.get(name)

    def texts(self, name: str) -> list[str]:
        """Return a list of strings; a single string becomes a list of one."""
        value = self.raw_value(name)
        found = [value] if isinstance(value, str) else value
        return [text for text in found if isinstance(text, str) and text] if isinstance(found, list) else []

    def report_unsupported(self, name: str, default_value: object) -> None:
        """Report a setting unless it has the value that switches it off."""
        value = self.raw_value(name)
        if value is not None and value not in (default_value, "", [], {}):
            self.unsupported.append(tr("{name} has no counterpart here.").format(name=name))

    def report_unread(self) -> None:
        """Report every setting that was never read."""
        rest = [name for name, value in self.data.items() if name not in self._names_read and value is not None]
        if rest:
            self.unsupported.append(tr("Settings without a counterpart here: {names}.").format(names=join_names(rest)))


@dataclass(slots=True)
class ForeignSettingsWriter:
    """Converts settings to another program's format and records those it cannot express."""

    values: Mapping[str, Any]
    """Every active setting, by name."""
    data: dict[str, Any] = field(default_factory=dict)
    unsupported: list[str] = field(default_factory=list)
    """Names of settings that the program interprets differently or ignores."""
    _used: set[str] = field(default_factory=set)

    def read(self, name: str, default: Any) -> Any:
        """Return a setting's value, or `default` if it is not set."""
        self._used.add(name)
        value = self.values.get(name)
        return default if value is None else value

    def report_unread(self, is_default: Callable[[str, Any], bool]) -> None:
        """Report the settings never read, except values for which `is_default` is true."""
        self.unsupported += [
            name for name, value in self.values.items() if name not in self._used and not is_default(name, value)
        ]


@dataclass(frozen=True, slots=True)
class ForeignProgram:
    """Another program whose settings can be read and written."""

    name: str
    marks: frozenset[str]
    """Names that occur only in its files."""
    read: Callable[[Mapping[str, Any]], ForeignSettingsReader]
    write: Callable[[ForeignSettingsWriter], None]
    source: str
    """URL of the documentation of its names and defaults."""
    mirostat_note: str
    """Which settings it ignores while mirostat is on: a sentence marked for translation."""
    count_penalties: tuple[str, ...] = ()
    """The frequency and presence penalties that it has; it also counts the tokens of the prompt."""


def read_temperature(reader: ForeignSettingsReader, temperature: float, order: Sequence[str]) -> list[str]:
    """Read the temperature, fixed or dynamic (entropy-based); return the order with the matching stage."""
    reach, exponent = reader.number("dynatemp_range"), reader.number("dynatemp_exponent")
    if temperature <= 0:
        reader.values["do_sample"] = False
        return [name for name in order if name != "temperature"]
    if reach <= 0:
        reader.values["temperature"] = temperature
        return list(order)
    low = temperature - reach
    if low <= 0:
        low = 0.01
        reader.unsupported.append(tr("dynatemp_range reaches down to 0; it starts at {low:g} here.").format(low=low))
    reader.values |= {"temperature": 1.0, "dynatemp_low": low, "dynatemp_high": temperature + reach,
                     "dynatemp_exponent": exponent}  # fmt: skip
    return ["dynatemp_high" if name == "temperature" else name for name in order]


def temperature_stage(out: ForeignSettingsWriter) -> str:
    """Return which of our two temperature stages corresponds to the program's temperature."""
    return "temperature" if out.read("dynatemp_high", None) is None else "dynatemp_high"


def write_temperature(out: ForeignSettingsWriter) -> None:
    """Write the temperature as both programs store it: the middle of a range, and the distance to its ends."""
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


def read_dry(reader: ForeignSettingsReader) -> None:
    """Read DRY, which has the same names in both programs; a range of 0 switches it off, −1 means the whole text."""
    reach = reader.integer("dry_penalty_last_n")
    multiplier = reader.number("dry_multiplier") if reach else 0.0
    reader.values |= {"dry_multiplier": multiplier, "dry_base": reader.number("dry_base"),
                     "dry_allowed_length": max(1, reader.integer("dry_allowed_length")),
                     "dry_range": reach if 0 < reach < UNLIMITED_RANGE else 0}  # fmt: skip
    breakers = reader.raw_value("dry_sequence_breakers")
    if breakers and not (isinstance(breakers, list) and sorted(map(str, breakers)) == sorted(BREAKERS)):
        reader.unsupported.append(
            tr("dry_sequence_breakers: here the breakers are line break, colon, quote and asterisk.")
        )


def write_dry(out: ForeignSettingsWriter, unlimited: int) -> None:
    """Write DRY; `unlimited` is the program's value for "the whole text"."""
    out.data |= {
        "dry_multiplier": out.read("dry_multiplier", 0.0), "dry_base": out.read("dry_base", 1.75),
        "dry_allowed_length": out.read("dry_allowed_length", 2),
        "dry_penalty_last_n": out.read("dry_range", 0) or unlimited,
    }  # fmt: skip


def read_mirostat(
    reader: ForeignSettingsReader, ignored: Collection[str], replacements: Mapping[str, Any], note: str
) -> bool:
    """Read mirostat and return whether it is on. Settings the program then ignores are switched off.

    `replacements` holds their values in the program's format; `note` is the marked sentence shown to the user.
    """
    mode = reader.integer("mirostat")
    tau, eta = reader.number("mirostat_tau"), reader.number("mirostat_eta")
    if mode not in (1, 2):
        reader.unsupported += [tr("mirostat {mode} is not supported.").format(mode=mode)] if mode else []
        return False
    reader.data = {**{name: value for name, value in reader.data.items() if name not in ignored}, **replacements}
    reader.values |= {"mirostat_tau": tau, "mirostat_eta": eta}
    reader.unsupported += [tr("mirostat 1 is not supported; mirostat 2 is used instead.")] if mode == 1 else []
    reader.unsupported += mirostat_notes(note)
    return True


def mirostat_notes(note: str) -> tuple[str, str]:
    """Return what a program ignores while mirostat is on (`note`, a marked sentence), and how its threshold update
    differs from ours: both programs use the drawn token's probability renormalized after the cut, Basu et al. (2021)
    and we its probability before the cut.
    """
    moved = tr(
        "There, the limit is adjusted after each token by its surprise among the remaining tokens; "
        "here, by its surprise before the cut."
    )
    return tr(note), moved


def write_mirostat(out: ForeignSettingsWriter) -> None:
    """Write mirostat 2 if it is on; neither program updates its threshold as we do."""
    tau, eta = out.read("mirostat_tau", None), out.read("mirostat_eta", 0.1)
    out.unsupported += [] if tau is None else ["mirostat_tau"]
    out.data |= {"mirostat": 0 if tau is None else 2, "mirostat_tau": 5.0 if tau is None else tau, "mirostat_eta": eta}


def read_penalty(reader: ForeignSettingsReader, name: str, range_name: str) -> None:
    """Read the repetition penalty, which covers the whole text here."""
    penalty, reach = reader.number(name), reader.integer(range_name)
    reader.values["repetition_penalty"] = penalty if reach else 1.0
    if penalty != 1.0 and 0 < reach < UNLIMITED_RANGE:
        template = tr("{name} is {reach:,}: here the penalty covers the whole text.")
        reader.unsupported.append(template.format(name=range_name, reach=reach))


def read_count_penalty(reader: ForeignSettingsReader, name: str) -> None:
    """Read a frequency or presence penalty of a program that also counts the tokens of the prompt."""
    if penalty := reader.raw_value(name):
        reader.values[name] = penalty
        reader.unsupported.append(count_penalty_note(name))


def has_place(reader: ForeignSettingsReader, stage: str) -> bool:
    """Return whether a stage is listed in the order: a frequency or presence penalty only if it is on."""
    return stage not in ("frequency_penalty", "presence_penalty") or bool(reader.values.get(stage))


def write_count_penalty(out: ForeignSettingsWriter, name: str) -> None:
    """Write a frequency or presence penalty for a program that also counts the tokens of the prompt."""
    penalty = out.read(name, 0.0)
    out.data[name] = penalty
    out.unsupported += [name] if penalty else []


def count_penalty_note(name: str) -> str:
    """Return what a frequency or presence penalty counts here."""
    return tr("{name}: here it counts the tokens of the answer, not those of the prompt.").format(name=name)


def written_count_penalty_note(name: str) -> str:
    """Return what a frequency or presence penalty counts in the program."""
    return tr("{name}: there it also counts the tokens of the prompt.").format(name=name)


def positive_or_none(value: float) -> float | None:
    """Return None for values of 0 or less, which switch a setting off in the programs."""
    return value if value > 0 else None


def set_stage_order(reader: ForeignSettingsReader, order: Iterable[str]) -> None:
    """Store the order of the stages in the option `stages`."""
    reader.values["stages"] = list(dict.fromkeys(order))
