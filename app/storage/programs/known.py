"""Whose file it is, and what it comes to here as the plain data of a GenerationConfig."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from app.storage.programs.common import Program, Writing
from app.storage.programs.kobold import PROGRAM as KOBOLD
from app.storage.programs.llama_cpp import PROGRAM as LLAMA
from core import strategies
from resources.language import tr

PROGRAMS: Mapping[str, Program] = {program.name: program for program in (KOBOLD, LLAMA)}
"""By name; KoboldCpp first, for its files may have names of llama.cpp's beside its own."""
_OURS = {"do_sample", "max_new_tokens", "repetition_penalty", "transformers_version", "tokenscope", "eos_token_id"}
_STRATEGY = "sampling"


def program_of(data: Mapping[str, Any]) -> Program | None:
    """The program whose settings these are; None for a GenerationConfig, and for what nobody else names so."""
    if _OURS & data.keys():
        return None
    return next((program for program in PROGRAMS.values() if program.marks & data.keys()), None)


def read(program: Program, data: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """(plain data of a GenerationConfig, what has no counterpart here: a sentence each)."""
    found = program.read(data)
    samples = found.values.pop("do_sample", True)
    strategy = strategies.registry[_STRATEGY if samples else "greedy"]
    own = {p.name for p in strategy.parameters if p.option}
    stages = found.values.pop("stages")
    if samples and "stages" in own:
        found.values["stages"] = stages
    values = {name: value for name, value in found.values.items() if value is not None}
    options = {name: value for name, value in values.items() if name in own}
    data = {"do_sample": samples, **{name: value for name, value in values.items() if name not in own}}
    if not samples:
        known = {p.name for p in strategy.parameters}
        data = {name: value for name, value in data.items() if name in known or name == "do_sample"}
        options = {name: value for name, value in options.items() if name in known}
    return {**data, "tokenscope": {"options": options}}, tuple(found.left)


def written(program: Program, strategy: str, values: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """(the program's JSON, names of settings here that it has no counterpart for)."""
    known = strategies.registry[strategy]
    samples = known.flags.get("do_sample") is True
    out = Writing({**values, "do_sample": samples, "stages": list(values.get("stages") or usual_order())})
    program.write(out)
    usual = {p.name: p.default for p in known.parameters}
    out.finish(lambda name, value: usual.get(name, value) == value)
    named = [tr(known.title)] if strategy not in (_STRATEGY, "greedy") else []
    return out.data, (*named, *out.left)


def usual_order() -> list[str]:
    """The stages in their usual order here."""
    from core import usual_stages  # one file each: more than opening a window needs

    return list(usual_stages())
