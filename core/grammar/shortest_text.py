"""Minimum number of tokens of the shortest text of a grammar, computed from what all its texts contain."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

from decodescope.core.grammar.gbnf import to_lark
from decodescope.core.grammar.grammar_setting import grammar_kind, schema_of
from decodescope.core.grammar.length_bounds import (
    BYTE_MEASURES,
    NEVER,
    NOTHING,
    BoundMeasures,
    ByteSet,
    LowerBound,
    max_bound,
    min_bound,
    regex_lower_bound,
    schema_lower_bound,
    sum_bounds,
)


class TokenCoverage:
    """Computes minimum token counts for a vocabulary."""

    def __init__(self, tokens: Iterable[bytes | None]) -> None:
        self._tokens = {token for token in tokens if token}
        self.longest = max(map(len, self._tokens), default=1)
        """Length of the longest token in bytes."""
        self._rows: dict[frozenset[int], int] = {}

    @cached_property
    def _beginnings(self) -> set[bytes]:
        return {token[:end] for token in self._tokens for end in range(1, len(token) + 1)}

    @cached_property
    def _endings(self) -> set[bytes]:
        return {token[start:] for token in self._tokens for start in range(len(token))}

    @cached_property
    def _joined(self) -> bytes:
        return b"\0".join(self._tokens)

    def min_for_any(self, count: int) -> int:
        """Return the minimum number of tokens for `count` arbitrary bytes."""
        return -(-count // self.longest)

    def min_for_letters(self, count: int, letters: ByteSet) -> int:
        """Return the minimum for `count` bytes from `letters`: a token covers at most the longest run of them in any
        token.
        """
        if not letters:
            return self.min_for_any(count)
        if letters not in self._rows:
            row = re.compile(b"[%s]+" % b"".join(b"\\x%02x" % one for one in sorted(letters)))
            found = (part for token in self._tokens for part in row.findall(token))
            self._rows[letters] = max(map(len, found), default=1)
        return -(-count // self._rows[letters])

    def min_covering(self, part: bytes) -> int:
        """Return the minimum for `part` of a text; the first token may begin before it and the last may end after
        it.
        """
        size = len(part)
        if part in self._joined:
            return 1
        fewest = [0] + [1 if part[:end] in self._endings else size for end in range(1, size + 1)]
        for end in range(1, size + 1):
            known = self._tokens if end < size else self._beginnings
            ways = (fewest[start] + 1 for start in range(end) if part[start:end] in known)
            fewest[end] = min(fewest[end], min(ways, default=size))
        return min(fewest[size], size)

    def min_spelling(self, word: bytes) -> int:
        """Return the minimum number of tokens that spell exactly `word`; its length if none do."""
        fewest = [0] + [len(word)] * len(word)
        for end in range(1, len(word) + 1):
            parts = (fewest[start] + 1 for start in range(end) if word[start:end] in self._tokens)
            fewest[end] = min(parts, default=len(word))
        return fewest[-1]


_NAME = r"[A-Za-z_](?:[A-Za-z0-9_]|-(?!>))*"
_HEAD = re.compile(rf"^[ \t]*[!?]*({_NAME})(?:\.-?\d+)?[ \t]*(\[[^\]\n]*\])?[ \t]*:(?!:)", re.MULTILINE)
_STATEMENT = re.compile(rf"{_HEAD.pattern}|^[ \t]*%(?!json|regex|lark)", re.MULTILINE)
_IGNORED = re.compile(r"%(?:ignore|import|declare|llguidance)\b")
"""Statements that cannot shorten a text: imported rules count as empty."""
_SPACE = re.compile(r"(?:\s|//[^\n]*|#[^\n]*)*")
_TOKEN = re.compile(
    rf"""(?P<text>"(?:\\.|[^"\\\n])*")(?P<fold>i?)|(?P<regex>/(?!/)(?:\\.|[^/\\])+/)(?P<flags>[a-z]*)"""
    rf"""|(?P<special><[^>\n]+>)|(?P<other>@{_NAME})|(?P<name>{_NAME})|(?P<inner>%(?:json|regex))"""
    r"""|(?P<sign>->|\.\.|\{\d*(?:,\d*)?\}|\d+|[()\[\]|&?*+~])"""
)  # fmt: skip
_OPTIONAL = {"?", "*"}


def lark_lower_bound(grammar: str, measures: BoundMeasures) -> LowerBound:
    """Return a lower bound for every text of a grammar; NEVER if each text would have to contain itself.

    Return NOTHING if the grammar uses syntax that is not supported here.
    """
    try:
        rules = {name: _RuleReader(tokens, measures, "%ignore" not in grammar) for name, tokens in _rules(grammar)}
        return _fixed_point(rules)
    except (ValueError, IndexError, RecursionError):
        return NOTHING


def _fixed_point(rules: dict[str, _RuleReader]) -> LowerBound:
    """Return the bound of `start` at the fixed point, starting from the assumption that no rule has a text.

    The shortest text of a rule uses no rule twice, so there are at most as many rounds as rules.
    """
    known = dict.fromkeys(rules, NEVER)
    for _ in range(len(rules) + 1):
        before = dict(known)
        for name in reversed(rules):  # most grammars define rules before the rules they use
            known[name] = rules[name].read(known)
        if known == before:
            return known["start"] if "start" in known else NOTHING
    return NOTHING


class _Token(NamedTuple):
    kind: str
    value: str
    mark: str = ""
    """Flags of a regex; `i` for a text."""
    schema: object = None
    """The schema after %json."""


def _rules(grammar: str) -> Iterator[tuple[str, list[_Token]]]:
    """Yield (name, tokens of its definition) per rule. Raises ValueError for unsupported syntax."""
    starts = [found.start() for found in _STATEMENT.finditer(grammar)]
    if _SPACE.fullmatch(grammar, 0, starts[0] if starts else len(grammar)) is None:
        raise ValueError(grammar)
    seen = set[str]()
    for start, end in zip(starts, [*starts[1:], len(grammar)], strict=True):
        statement = grammar[start:end]
        if (head := _HEAD.match(statement)) is None:
            if _IGNORED.match(statement.strip()) is None:
                raise ValueError(statement)
            continue
        if head[1] in seen:
            raise ValueError(head[1])
        seen.add(head[1])
        # Attributes may end a text early (max_tokens, stop) or omit a part of it (suffix).
        yield head[1], [] if head[2] else list(_tokens(statement[head.end() :]))


def _tokens(text: str) -> Iterator[_Token]:
    """Yield the tokens of a rule. Raises ValueError for anything else."""
    place = _end_of_space(text, 0)
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise ValueError(text[place:])
        kind, place = str(found.lastgroup), found.end()
        kind = {"fold": "text", "flags": "regex"}.get(kind, kind)
        schema = None
        if kind == "inner":
            schema, place = json.JSONDecoder().raw_decode(text, _end_of_space(text, place))
        yield _Token(kind, found[kind], found["fold"] or found["flags"] or "", schema)
        place = _end_of_space(text, place)


def _end_of_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found is not None else position


class _RuleReader:
    """Reads a rule's definition from left to right, once per round."""

    def __init__(self, tokens: list[_Token], measures: BoundMeasures, is_dense: bool) -> None:
        """Create a reader. `is_dense`: whether nothing is ignored between the parts of a text (%ignore)."""
        self._tokens, self._measures, self._is_dense = tokens, measures, is_dense
        self._known: dict[str, LowerBound] = {}
        self._position = 0

    def read(self, bounds: dict[str, LowerBound]) -> LowerBound:
        """Return the bound of the rule, given the bounds of all rules so far. Raises ValueError."""
        self._known, self._position = bounds, 0
        found = self._alternatives()
        if self._position < len(self._tokens):
            raise ValueError(self._tokens[self._position])
        return found

    def _next_sign(self) -> str:
        """Return the next sign, or "" if there is none."""
        token = self._tokens[self._position] if self._position < len(self._tokens) else None
        return token.value if token is not None and token.kind == "sign" else ""

    def _alternatives(self) -> LowerBound:
        ways = [self._conditions()]
        while self._next_sign() == "|":
            self._position += 1
            ways.append(self._conditions())
        return min_bound(ways)

    def _conditions(self) -> LowerBound:
        """Return the bound of parts joined by `&`, which must all match."""
        all_of = [self._sequence()]
        while self._next_sign() == "&":
            self._position += 1
            all_of.append(self._sequence())
        return max_bound(all_of)

    def _sequence(self) -> LowerBound:
        parts = []
        while self._position < len(self._tokens) and self._next_sign() not in ("|", "&", ")", "]", "->"):
            parts.append(self._part())
        if self._next_sign() == "->":
            self._position += 2  # skip the alias of this alternative
        return sum_bounds(parts)

    def _part(self) -> LowerBound:
        """Return the bound of a repeated item; one letter repeated without gaps counts as a row of that letter."""
        token, part, times = self._tokens[self._position], self._item(), self._repetitions()
        if token.kind == "text" and not token.mark and part.bytes == 1 and times > 1 and self._is_dense:
            letter = json.loads(token.value).encode()
            return self._measures.of_letters(times, frozenset(letter) if len(letter) == 1 else None)
        return part.repeated(times)

    def _item(self) -> LowerBound:
        token = self._tokens[self._position]
        self._position += 1
        if token.kind != "sign":
            return self._terminal(token)
        if token.value == "~":  # negation: no bound is known
            self._item()
            return NOTHING
        if token.value not in ("(", "["):
            raise ValueError(token)
        inside = self._alternatives()
        if self._next_sign() != {"(": ")", "[": "]"}[token.value]:
            raise ValueError(token)
        self._position += 1
        return inside if token.value == "(" else NOTHING

    def _terminal(self, token: _Token) -> LowerBound:
        if token.kind == "name":
            return self._known.get(token.value, NOTHING)
        if token.kind == "text":
            return self._text_bound(json.loads(token.value), bool(token.mark))
        if token.kind == "regex":
            return self._regex_bound(token)
        if token.value == "%json" and "x-guidance" not in json.dumps(token.schema):
            return schema_lower_bound(token.schema, self._measures)
        return NOTHING

    def _regex_bound(self, token: _Token) -> LowerBound:
        """Return the bound of a regular expression; flags may fold the case of letters (i) or ignore white space
        (x).
        """
        found = regex_lower_bound(token.value[1:-1], BYTE_MEASURES if token.mark else self._measures)
        return NOTHING if "x" in token.mark else self._measures.of_any(int(found.bytes)) if token.mark else found

    def _text_bound(self, text: str, folds: bool) -> LowerBound:
        """Return the bound of literal letters, in one or either case, or of a range of letters."""
        if self._next_sign() == "..":
            self._position += 2
            return self._measures.of_any(1)
        if not text:
            return NOTHING
        return self._measures.of_any(len(text)) if folds else self._measures.of_bytes(text.encode())

    def _repetitions(self) -> int:
        """Return the minimum number of repetitions of the last item."""
        times = 1
        while (sign := self._next_sign()) and (sign in "?*+~" or sign[0] == "{"):
            self._position += 1
            if sign[0] == "{":
                times *= int(sign[1:-1].partition(",")[0] or 0)
            elif sign == "~":
                times *= self._read_count()
            elif sign in _OPTIONAL:
                times = 0
        return times

    def _read_count(self) -> int:
        """Read the number or range after `~`."""
        minimum = int(self._next_sign())
        self._position += 1
        if self._next_sign() == "..":
            self._position += 2
        return minimum


_KEY = "covering"


def min_tokens(
    value: Mapping[str, Any], vocabulary: Sequence[bytes | None], limit: int,
    cache: MutableMapping[str, object] | None = None,
) -> int | None:  # fmt: skip
    """Return a lower bound for the tokens of any text of the grammar; 0 if `limit` tokens are surely enough; None if
    there is no text.

    A text of exactly that many tokens need not exist. `cache` caches what is computed from the vocabulary, which is
    slow for large vocabularies.
    """
    kind, covering = grammar_kind(value), partial(_cached_coverage, vocabulary, {} if cache is None else cache)
    if kind == "choice":
        words = [word.encode() for word in value[kind]]
        if min(map(len, words)) <= limit:
            return 0
        return min(map(covering().min_spelling, words))
    if kind in ("lark", "gbnf"):
        lark = value[kind] if kind == "lark" else to_lark(value[kind])
        return _bound_from_parts(partial(lark_lower_bound, lark), covering, limit)
    if kind == "regex":
        return _bound_from_parts(partial(regex_lower_bound, value[kind]), covering, limit)
    return _bound_from_parts(partial(schema_lower_bound, schema_of(value[kind])), covering, limit)


def _cached_coverage(vocabulary: Sequence[bytes | None], cache: MutableMapping[str, object]) -> TokenCoverage:
    known = cache.get(_KEY)
    if not isinstance(known, TokenCoverage):
        cache[_KEY] = known = TokenCoverage(vocabulary)
    return known


def _bound_from_parts(
    shortest: Callable[[BoundMeasures], LowerBound], get_coverage: Callable[[], TokenCoverage], limit: int
) -> int | None:
    """Compute the bound from bytes alone first: token coverage is slow to compute and rarely needed."""
    found = shortest(BYTE_MEASURES)
    if found.bytes <= limit:
        return 0
    if math.isinf(found.bytes):
        return None
    covering = get_coverage()
    found = shortest(BoundMeasures(
        lambda part: LowerBound(len(part), covering.min_covering(part) - 1),
        lambda count, letters: LowerBound(count, max(covering.min_for_letters(count, letters) - 1, 0)),
    ))  # fmt: skip
    return max(1 + int(found.inner_tokens), covering.min_for_any(int(found.bytes)))
