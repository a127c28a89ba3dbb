"""Detect which program a settings file belongs to, and convert it to the plain data of a GenerationConfig and back."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from decodescope.app.storage.programs import settings_io
from decodescope.app.storage.programs.kobold import PROGRAM as KOBOLD
from decodescope.app.storage.programs.llama_cpp import PROGRAM as LLAMA
from decodescope.app.storage.programs.read_only_formats import FORMATS, foreign_program
from decodescope.app.storage.programs.settings_io import ForeignProgram, ForeignSettingsWriter, mirostat_notes
from decodescope.core import strategies
from decodescope.core.common.program_name import NAME
from decodescope.core.errors import ParameterError
from decodescope.resources.language import tr

WRITABLE_PROGRAMS: Mapping[str, ForeignProgram] = {program.name: program for program in (KOBOLD, LLAMA)}
"""Keyed by name; KoboldCpp is checked first, because its files may also contain llama.cpp's names."""
_OWN_NAMES = {"do_sample", "max_new_tokens", "repetition_penalty", "transformers_version", "eos_token_id", NAME}
_OWN_MARKS = {"transformers_version", "_from_model_config", NAME}
_STRATEGY = "sampling"
_TEMPERATURE_SETTINGS = ("temperature", "dynatemp_high", "mirostat_tau")
"""Settings that have an effect whenever they are set, except a temperature of 1."""


def program_of(data: Mapping[str, Any]) -> ForeignProgram | None:
    """Return the program that these settings belong to; None for a GenerationConfig and for unrecognized names."""
    if _OWN_MARKS & data.keys():
        return None
    if found := foreign_program(data):
        return found
    if _OWN_NAMES & data.keys() and not KOBOLD.marks & data.keys():
        return None
    return next(
        (program for program in WRITABLE_PROGRAMS.values() if program.marks & data.keys() or _is_kobold_story(data)),
        None,
    )


def has_settings(data: Mapping[str, Any]) -> bool:
    """Return whether a file of no other program contains the name of any setting."""
    from transformers import GenerationConfig

    known = {name for one in strategies.registry.values() for name in (*one.flags, *(p.name for p in one.parameters))}
    return not data or bool(data.keys() & {*known, *_OWN_NAMES, *GenerationConfig().to_dict()})


def readable_programs() -> tuple[str, ...]:
    """Return the names of all programs whose settings can be read."""
    return tuple(sorted({*WRITABLE_PROGRAMS, *(one.name for one in FORMATS)}))


def _is_kobold_story(data: Mapping[str, Any]) -> bool:
    return isinstance(data.get("savedsettings"), Mapping)


def import_settings(program: ForeignProgram, data: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Convert a program's settings to (settings by name, one sentence for each setting without a counterpart)."""
    found = program.read(data)
    samples = found.values.pop("do_sample", True)
    if not (samples and found.values["stages"]):
        del found.values["stages"]
    known = found.values if samples else strategies.registry["greedy"].parameter_names
    values = {name: value for name, value in found.values.items() if name in known and value is not None}
    return {"do_sample": samples, **values}, tuple(found.unsupported)


def export_settings(
    program: ForeignProgram, strategy: str, values: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Convert settings to (the program's JSON, names of settings that it interprets differently or ignores)."""
    known = strategies.registry[strategy]
    samples = known.flags.get("do_sample") is True
    out = ForeignSettingsWriter({**values, "do_sample": samples, "stages": _order(values.get("stages"))})
    program.write(out)
    usual = {p.name: p.default for p in known.parameters}
    out.report_unread(lambda name, value: usual.get(name, value) == value)
    named = [tr(known.title)] if strategy not in (_STRATEGY, "greedy") else []
    return out.data, tuple(dict.fromkeys((*named, *out.unsupported, *_differing_settings(program, out))))


def export_notes(program: ForeignProgram, values: Mapping[str, Any]) -> tuple[str, ...]:
    """Return sentences on how the program treats these settings, in addition to the names that `export_settings`
    returns.
    """
    counted = [name for name in ("frequency_penalty", "presence_penalty") if values.get(name)]
    written = [name for name in counted if name in program.count_penalties]
    mirostat = mirostat_notes(program.mirostat_note) if values.get("mirostat_tau") is not None else ()
    return (*(settings_io.written_count_penalty_note(name) for name in written), *mirostat)


def _order(names: Sequence[str] | None) -> list[str]:
    """Return all stages in their order of application; the default order if `names` is invalid."""
    from decodescope.core import stage_order  # imports one file per stage, too slow for opening a window

    try:
        return list(stage_order(names))
    except ParameterError:
        return list(stage_order())


def _differing_settings(program: ForeignProgram, out: ForeignSettingsWriter) -> Iterator[str]:
    """Yield settings that the program interprets differently: it ignores some with mirostat, and some of its stages
    have a fixed position.
    """
    back = program.read(out.data).values
    on = {name for name, off in settings_io.OFF_VALUES.items() if out.values.get(name) not in (None, off)}
    idle = {"stages", "do_sample", *(name for name, stage in settings_io.STAGE_OF.items() if stage not in on)}
    for name, value in out.values.items():
        if name not in idle and name in {*back, "dynatemp_high"} and value is not None:
            if not _is_close(value, back.get(name)):
                yield name
    acting = on & back.keys()
    acting |= {name for name in _TEMPERATURE_SETTINGS if back.get(name) not in (None, 1.0)}
    orders = (out.values["stages"], _order(back["stages"]))
    here, there = ([name for name in order if name in acting] for order in orders)
    if here != there:
        yield "stages"


def _is_close(one: object, other: object) -> bool:
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return one == other
