"""A grammar in each engine's words. Read from what they document:

vLLM: https://docs.vllm.ai/en/latest/features/structured_outputs/ · SGLang:
https://docs.sglang.io/advanced_features/structured_outputs.html · llama.cpp: tools/server/README.md ·
OpenAI's `response_format` for others, in chats alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.errors import ParameterError
from core.grammar.grammar_setting import KINDS, TITLES, kind_of, schema_of
from core.remote.backends import Kind
from resources.language import tr

Body = dict[str, object]
_FormatGrammar = Callable[[Any], Body]


def grammar_fields(grammar: Mapping[str, object], kind: Kind, is_chat: bool) -> Body:
    """The fields of a request that ask for it. Raises ParameterError where that engine knows no such grammar."""
    wordings = _formats_of(kind, is_chat)
    form = kind_of(grammar)
    if form not in wordings:
        raise _unsupported_error(kind, TITLES[form], [tr(TITLES[name]) for name in KINDS if name in wordings])
    return wordings[form](grammar[form])


def _unsupported_error(kind: Kind, title: str, known: Sequence[str]) -> ParameterError:
    remedy = (
        tr("It knows: {names}.").format(names=", ".join(known)) if known else tr("Ask it in a chat, or leave it out.")
    )
    return ParameterError(
        tr("{engine} keeps to no grammar of this kind: {kind}.").format(engine=kind.title, kind=tr(title)),
        remedy,
        "grammar",
    )


def _formats_of(kind: Kind, is_chat: bool) -> Mapping[str, _FormatGrammar]:
    if kind.name == "other":
        return _OPENAI if is_chat else {}
    return _FORMATS.get(kind.name, {})


def _structured(name: str) -> _FormatGrammar:
    return lambda content: {"structured_outputs": {name: schema_of(content) if name == "json" else content}}


def _response_format(content: object) -> Body:
    schema = {"name": "text", "schema": schema_of(content), "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _choice_regex(words: Sequence[str]) -> str:
    """One of several texts, as a regular expression."""
    return f"({'|'.join(map(re.escape, words))})"


def _choice_gbnf(words: Sequence[str]) -> str:
    """The same as llama.cpp's grammar, whose strings are written as JSON's."""
    return "root ::= " + " | ".join(json.dumps(word, ensure_ascii=False) for word in words)


_FORMATS: Mapping[str, Mapping[str, _FormatGrammar]] = {
    "vllm": {"json_schema": _structured("json"), "regex": _structured("regex"), "choice": _structured("choice")},
    "sglang": {
        "json_schema": lambda content: {"json_schema": json.dumps(schema_of(content))},
        "regex": lambda content: {"regex": content},
        "choice": lambda content: {"regex": _choice_regex(content)},
    },
    "llama.cpp": {
        "json_schema": lambda content: {"json_schema": schema_of(content)},
        "choice": lambda content: {"grammar": _choice_gbnf(content)},
    },
    "llama-cpp-python": {"choice": lambda content: {"grammar": _choice_gbnf(content)}},
}
_OPENAI: Mapping[str, _FormatGrammar] = {"json_schema": _response_format}
