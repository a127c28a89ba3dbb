"""Compile a grammar setting into an llguidance matcher, within limits and with readable errors."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from decodescope.core.errors import ParameterError
from decodescope.core.grammar.gbnf import to_lark
from decodescope.core.grammar.grammar_setting import TITLES, grammar_format_problem, grammar_kind, schema_of
from decodescope.core.system.optional_deps import why_missing
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer


SETTING = "grammar"
SPACE = " ?"
"""Allowed between the parts of a JSON text unless the schema specifies it (`x-guidance`). Any white space would be
valid JSON, but then small models write line breaks forever.
"""
MAX_COMPILED = 16
"""Compiled grammars cached per model."""


def matcher_for(vocabulary: GrammarVocabulary, value: Mapping[str, object], spaced: bool) -> LLMatcher:
    """Return a matcher at the start of a text. `spaced`: a space may precede it, which the text will not show.

    Raises ParameterError with a readable reason.
    """
    if reason := grammar_format_problem(value):
        raise grammar_error(reason)
    if reason := why_missing("grammar"):
        raise ParameterError(reason, tr("Install it, or turn the grammar off."), SETTING)
    compiled: OrderedDict[str, LLMatcher] = vocabulary.cache.setdefault("grammar/compiled", OrderedDict())
    key = json.dumps([value, vocabulary.end_tokens, spaced])
    if key not in compiled:
        compiled[key] = _compile(vocabulary.tokenizer(), value, spaced)
        while len(compiled) > MAX_COMPILED:
            compiled.popitem(last=False)
    compiled.move_to_end(key)
    return compiled[key].deep_copy()


def grammar_error(reason: str) -> ParameterError:
    """Return the error for a grammar that cannot be used."""
    return ParameterError(
        tr("The grammar cannot be used: {reason}").format(reason=reason),
        tr("Correct it, or turn the grammar off."),
        SETTING,
    )


def _compile(tokenizer: LLTokenizer, value: Mapping[str, object], spaced: bool) -> LLMatcher:
    from llguidance import LLMatcher

    matcher = LLMatcher(tokenizer, llguidance_grammar(value, spaced), log_level=0)
    if not matcher.is_error():
        matcher.compute_bitmask()  # detects grammars without any text
    if matcher.is_error():
        raise grammar_error(_readable_message(kind_title(value), matcher.get_error()))
    return matcher


def kind_title(value: Mapping[str, object]) -> str:
    """Return the name of the kind of grammar, for messages."""
    return tr(TITLES[grammar_kind(value)])


def grammar_problem(value: object) -> str:
    """Return why a run could not use `value` as a grammar, as a sentence; empty if it can, as far as known without a
    model.
    """
    if not isinstance(value, Mapping) or grammar_format_problem(value) or why_missing("grammar"):
        return grammar_format_problem(value)
    from llguidance import LLMatcher

    try:
        wrong, messages = LLMatcher.validate_grammar_with_warnings(llguidance_grammar(value, False))
    except ParameterError as error:
        return error.cause
    return grammar_error(_readable_message(kind_title(value), messages[0])).cause if wrong else ""


def llguidance_grammar(value: Mapping[str, object], spaced: bool) -> str:
    """Return the grammar in llguidance's format: the text as a separate rule, and no forced tokens.

    Forcing would allow only the tokenizer's own spelling of text that must follow.
    """
    start = '%llguidance {"no_forcing": true}\nstart: ' + ('" "? @text' if spaced else "@text")
    return json.dumps({"grammars": [{"lark_grammar": start}, {**_text_grammar(value), "name": "text"}]})


def _text_grammar(value: Mapping[str, Any]) -> dict[str, Any]:
    from llguidance import LLMatcher

    kind, content = grammar_kind(value), value[grammar_kind(value)]
    if kind == "choice":
        return {"lark_grammar": "start: " + " | ".join(json.dumps(word, ensure_ascii=False) for word in content)}
    if kind == "lark":
        return {"lark_grammar": content}
    if kind == "gbnf":
        return {"lark_grammar": to_lark(content)}
    if kind == "regex":
        made = LLMatcher.grammar_from_regex(content)
    else:
        schema = schema_of(content)
        made = LLMatcher.grammar_from_json_schema(json.dumps(_schema_object(schema)), {"whitespace_pattern": SPACE})
    (found,) = json.loads(made)["grammars"]
    return dict(found)


def _schema_object(schema: Any) -> Mapping[str, Any]:
    """Return the schema as an object: `true` allows everything, `false` nothing."""
    if schema is False:
        raise grammar_error(tr("no text can match this schema."))
    return {} if schema is True else schema


_POSITION = re.compile(r"(?:at )?(\d+)\((\d+)\): ")


def _readable_message(title: str, message: str) -> str:
    """Return llguidance's message without its internal state, line picture and Rust details."""
    if message.startswith("Unsatisfiable schema: "):
        reason = message.removeprefix("Unsatisfiable schema: ").partition("\n")[0]
        return tr("no text can match this schema: {reason}.").format(reason=reason)
    if message.startswith("Unimplemented keys: "):
        names = message.removeprefix("Unimplemented keys: ").strip("[]\n").replace('"', "")
        return tr("the schema uses keywords that cannot be enforced token by token: {names}.").format(names=names)
    if "NoExtension" in message:
        return tr("no text can match this {kind}.").format(kind=title)
    if ("limit" in message.lower() and "exceeded" in message) or "too complex" in message.lower():
        return tr("this {kind} is too large or too deeply nested.").format(kind=title)
    parsed = re.search(r"^\s*error: (.+)$", message, re.MULTILINE)
    place = _POSITION.match(message)
    complaint = parsed[1] if parsed else _POSITION.sub("", message, count=1).partition("\n")[0]
    complaint = complaint.strip().rstrip(".")
    if place and not parsed:
        return tr("line {line}, character {column}: {reason}.").format(line=place[1], column=place[2], reason=complaint)
    return tr("this is not a valid {kind}: {reason}.").format(kind=title, reason=complaint)


@dataclass(frozen=True, slots=True)
class GrammarVocabulary:
    """The bytes that each token adds to a text (None: nothing), and the end tokens."""

    bytes: Sequence[bytes | None]
    names: Callable[[int], str]
    """Name of a token that adds no text (`<s>`), which a Lark grammar may use."""
    end_tokens: tuple[int, ...] = ()
    cache: dict[str, Any] = field(default_factory=dict)
    """Cache of derived objects, kept between runs."""

    def tokenizer(self) -> LLTokenizer:
        """Return llguidance's tokenizer; without an end token, an extra id ends a text."""
        key = f"grammar/tokenizer/{self.end_tokens}"
        found: LLTokenizer | None = self.cache.get(key)
        if found is None:
            found = self.cache[key] = self._build_tokenizer()
        return found

    def _build_tokenizer(self) -> LLTokenizer:
        from llguidance import LLTokenizer, TokenizerWrapper

        tokens = [
            self.names(token).encode("utf-8", "replace") if data is None else data
            for token, data in enumerate(self.bytes)
        ]
        ends = list(self.end_tokens) or [len(tokens)]
        tokens += [b"end"] * (not self.end_tokens)
        special = sorted({*ends, *(token for token, data in enumerate(self.bytes) if data is None)})
        wrapped = TokenizerWrapper(_TokenList(tokens, special, ends[0]))
        return LLTokenizer(wrapped, n_vocab=len(tokens), eos_token=ends)


class _TokenList:
    """The interface that `TokenizerWrapper` requires. Text is never tokenized, since no token is forced
    (`no_forcing`).
    """

    bos_token_id = None

    def __init__(self, tokens: list[bytes], special: list[int], end: int) -> None:
        self.tokens, self.special_token_ids, self.eos_token_id = tokens, special, end

    def __call__(self, text: bytes) -> list[int]:
        return []
