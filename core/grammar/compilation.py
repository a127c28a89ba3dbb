"""From a setting to llguidance's matcher: translated, compiled within limits, and refused in plain words."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from core.errors import ParameterError
from core.grammar.grammar_setting import TITLES, grammar_format_problem, kind_of, schema_of
from core.system.optional_deps import why_missing
from resources.language import tr

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer


SETTING = "grammar"
SPACE = " ?"
"""What may stand between the parts of a JSON text, unless the schema says otherwise (`x-guidance`): any white space
would be JSON too, and small models then write line breaks for ever."""
MAX_COMPILED = 16
"""Compiled grammars that a model keeps."""


def matcher_for(vocabulary: GrammarVocabulary, value: Mapping[str, object], spaced: bool) -> LLMatcher:
    """A matcher at the beginning of a text. `spaced`: a space may stand before it, which the text will not show.

    Raises ParameterError with what is wrong in plain words.
    """
    if reason := grammar_format_problem(value):
        raise grammar_error(reason)
    if reason := why_missing("grammar"):
        raise ParameterError(reason, tr("Install it, or switch the grammar off."), SETTING)
    kept: OrderedDict[str, LLMatcher] = vocabulary.cache.setdefault("grammar/compiled", OrderedDict())
    key = json.dumps([value, vocabulary.end_tokens, spaced])
    if key not in kept:
        kept[key] = _compile(vocabulary.tokenizer(), value, spaced)
        while len(kept) > MAX_COMPILED:
            kept.popitem(last=False)
    kept.move_to_end(key)
    return kept[key].deep_copy()


def grammar_error(reason: str) -> ParameterError:
    """A grammar that cannot be used."""
    return ParameterError(
        tr("The grammar cannot be used: {reason}").format(reason=reason),
        tr("Correct it, or switch the grammar off."),
        SETTING,
    )


def _compile(tokenizer: LLTokenizer, value: Mapping[str, object], spaced: bool) -> LLMatcher:
    from llguidance import LLMatcher

    matcher = LLMatcher(tokenizer, llguidance_grammar(value, spaced), log_level=0)
    if not matcher.is_error():
        matcher.compute_bitmask()  # no text at all is found out here
    if matcher.is_error():
        raise grammar_error(_readable_message(kind_title(value), matcher.get_error()))
    return matcher


def kind_title(value: Mapping[str, object]) -> str:
    """What a sentence calls the grammar."""
    return tr(TITLES[kind_of(value)])


def grammar_problem(value: object) -> str:
    """Why `value` is no grammar that a run could keep to, as a sentence; empty where it is one, as far as can be told
    without a model."""
    if not isinstance(value, Mapping) or grammar_format_problem(value) or why_missing("grammar"):
        return grammar_format_problem(value)
    from llguidance import LLMatcher

    try:
        wrong, messages = LLMatcher.validate_grammar_with_warnings(llguidance_grammar(value, False))
    except ParameterError as error:
        return error.cause
    return grammar_error(_readable_message(kind_title(value), messages[0])).cause if wrong else ""


def llguidance_grammar(value: Mapping[str, object], spaced: bool) -> str:
    """The grammar as llguidance reads it: the text as a rule of its own, and no token forced before its time.

    Forcing would allow of several spellings of what must come only the tokenizer's own.
    """
    start = '%llguidance {"no_forcing": true}\nstart: ' + ('" "? @text' if spaced else "@text")
    return json.dumps({"grammars": [{"lark_grammar": start}, {**_text_grammar(value), "name": "text"}]})


def _text_grammar(value: Mapping[str, Any]) -> dict[str, Any]:
    from llguidance import LLMatcher

    kind, content = kind_of(value), value[kind_of(value)]
    if kind == "choice":
        return {"lark_grammar": "start: " + " | ".join(json.dumps(word, ensure_ascii=False) for word in content)}
    if kind == "lark":
        return {"lark_grammar": content}
    if kind == "regex":
        made = LLMatcher.grammar_from_regex(content)
    else:
        schema = schema_of(content)
        made = LLMatcher.grammar_from_json_schema(json.dumps(_schema_object(schema)), {"whitespace_pattern": SPACE})
    (found,) = json.loads(made)["grammars"]
    return dict(found)


def _schema_object(schema: Any) -> Mapping[str, Any]:
    """`true` is what everything meets, `false` what nothing does."""
    if schema is False:
        raise grammar_error(tr("no text at all meets this schema."))
    return {} if schema is True else schema


_POSITION = re.compile(r"(?:at )?(\d+)\((\d+)\): ")


def _readable_message(title: str, message: str) -> str:
    """llguidance's words without its state, its picture of the line and its Rust."""
    if message.startswith("Unsatisfiable schema: "):
        reason = message.removeprefix("Unsatisfiable schema: ").partition("\n")[0]
        return tr("no text at all meets this schema: {reason}.").format(reason=reason)
    if message.startswith("Unimplemented keys: "):
        names = message.removeprefix("Unimplemented keys: ").strip("[]\n").replace('"', "")
        return tr("the schema asks for what cannot be kept token by token: {names}.").format(names=names)
    if "NoExtension" in message:
        return tr("no text at all is one of this {kind}.").format(kind=title)
    if ("limit" in message.lower() and "exceeded" in message) or "too complex" in message.lower():
        return tr("this {kind} is too large or too deeply nested.").format(kind=title)
    parsed = re.search(r"^\s*error: (.+)$", message, re.MULTILINE)
    place = _POSITION.match(message)
    said = parsed[1] if parsed else _POSITION.sub("", message, count=1).partition("\n")[0]
    said = said.strip().rstrip(".")
    if place and not parsed:
        return tr("line {line}, character {column}: {reason}.").format(line=place[1], column=place[2], reason=said)
    return tr("it is no {kind}: {reason}.").format(kind=title, reason=said)


@dataclass(frozen=True, slots=True)
class GrammarVocabulary:
    """What each token adds to a text in bytes (None: nothing), and which tokens end one."""

    bytes: Sequence[bytes | None]
    names: Callable[[int], str]
    """What a token that writes nothing is called (`<s>`): a Lark grammar may name it."""
    end_tokens: tuple[int, ...] = ()
    cache: dict[str, Any] = field(default_factory=dict)
    """Where what is made of it is kept between runs."""

    def tokenizer(self) -> LLTokenizer:
        """llguidance's view; without an end token, an id behind the last one ends a text."""
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
    """What `TokenizerWrapper` asks for. Text is never tokenized: no token is forced (`no_forcing`)."""

    bos_token_id = None

    def __init__(self, tokens: list[bytes], special: list[int], end: int) -> None:
        self.tokens, self.special_token_ids, self.eos_token_id = tokens, special, end

    def __call__(self, text: bytes) -> list[int]:
        return []
