"""Names and formats that several engines share."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TypeGuard

from decodescope.core.common.text import cut_short
from decodescope.core.grammar.grammar_setting import schema_of
from decodescope.core.remote.engines.base import Body

OFF_VALUES: Mapping[str, object] = {
    "temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "typical_p": 1.0, "repetition_penalty": 1.0,
    "xtc_probability": 0.0, "dry_multiplier": 0.0, "top_n_sigma": -1.0, "min_new_tokens": 0,
    "frequency_penalty": 0.0, "presence_penalty": 0.0,
}  # fmt: skip
"""The value at which a setting has no effect. It is sent explicitly, because engines have other defaults than those
shown here.
"""
OPENAI_SETTINGS = {
    "max_new_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p", "stop_strings": "stop",
}  # fmt: skip
"""Settings of the OpenAI-compatible API: our name → its name."""
COUNT_PENALTIES = {"frequency_penalty": "frequency_penalty", "presence_penalty": "presence_penalty"}
"""The penalties of OpenAI's API, for engines that count the tokens of the answer only."""
SEVERAL_TEXTS = {"num_return_sequences": "n"}
GRAMMAR = {"grammar": "grammar"}
"""Marks grammars as supported; `EngineKind.grammars` contains the fields."""
SERVER_SETTINGS = {
    "top_k": "top_k", "min_p": "min_p", "repetition_penalty": "repetition_penalty", "min_new_tokens": "min_tokens",
    "eos_token_id": "stop_token_ids", **COUNT_PENALTIES,
}  # fmt: skip
"""Further settings of vLLM and SGLang."""
USAGE = {"stream_options": {"include_usage": True}}
"""Requests token counts at the end of a stream."""


def response_format(content: object) -> Body:
    """Return OpenAI's field for a JSON schema."""
    schema = {"name": "text", "schema": schema_of(content), "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def gbnf_field(grammar: str) -> Body:
    """Return llama.cpp's field for a grammar in its own notation."""
    return {"grammar": grammar}


def choice_as_gbnf(choices: Sequence[str]) -> Body:
    """Return llama.cpp's field for a choice: a grammar (GBNF) whose strings are written like JSON's."""
    return {"grammar": "root ::= " + " | ".join(json.dumps(word, ensure_ascii=False) for word in choices)}


_MAX_NAME_LENGTH = 512
_MAX_FACT_LENGTH = 40
_MAX_COUNT = 2**53


def is_model_name(value: object) -> TypeGuard[str]:
    """Return whether a value in a list of models is a name."""
    return isinstance(value, str) and 0 < len(value) <= _MAX_NAME_LENGTH and value.isprintable()


def is_count(value: object, limit: int = 2**31) -> TypeGuard[int]:
    """Return whether a reported value is a plausible positive number."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < limit


def positive_count(value: object) -> int | None:
    """Return a reported size in bytes or tokens; None if it is not plausible."""
    return value if is_count(value, _MAX_COUNT) else None


def short_text(value: object) -> str:
    """Return a reported text on one line, shortened; empty if it is no text."""
    return cut_short(" ".join(value.split()), _MAX_FACT_LENGTH) if isinstance(value, str) else ""
