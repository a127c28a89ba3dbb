"""Patterns of texts as automata that read a text character by character, and detect when the answer is decided.

A regular expression of Python's syntax becomes a nondeterministic automaton (Thompson: Regular Expression Search
Algorithm, 1968). Its sets of states are the states of a deterministic one, built on demand. Expressions whose meaning
no finite automaton has (references to groups, look-around) are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal, NamedTuple, TypeAlias

from decodescope.core.checks.arguments import argument_error
from decodescope.core.errors import ParameterError
from decodescope.core.parameter import short_repr
from decodescope.resources.language import join_names, tr

ParsedPart: TypeAlias = Any
"""What Python's parser of expressions returns; it has no types."""
parser, constants = import_module("re._parser"), import_module("re._constants")
Place = Literal["begins", "contains", "full"]
"""Where a pattern matches: at the beginning of the text, anywhere, or the whole text."""
PLACES: tuple[Place, ...] = ("begins", "contains", "full")
_MAX_STATES = 20_000
"""Maximum number of states of one automaton; counted repetitions multiply."""
_FREE, _LAST_BREAK, _CLOSED = 0, 1, 2
"""What may still follow: any text; at most one line break (after `$`); nothing."""
_EMPTY_HAS_NO_BOUNDARY = re.match(r"\B", "") is not None
"""Whether `\\B` matches in an empty text, which depends on the version of Python."""
Guard = Literal["start", "line_start", "end", "end_or_break", "line_end", "boundary", "no_boundary"]


@dataclass(frozen=True, slots=True)
class TextPattern:
    """A text, or with `is_regex` a regular expression of Python's `re`, and where it must match."""

    text: str
    place: Place = "begins"
    is_regex: bool = False
    ignores_case: bool = False

    @property
    def expression(self) -> str:
        """The regular expression of what must match."""
        return self.text if self.is_regex else re.escape(self.text)

    def __str__(self) -> str:
        return f"/{self.text}/" if self.is_regex else self.text


def as_patterns(value: object, place: object = "begins", ignores_case: bool = False) -> tuple[TextPattern, ...]:
    """Return the patterns that `value` describes: a text, a compiled regular expression, a TextPattern, or several.

    Raises ParameterError for other values, an empty list, and expressions that cannot be used.
    """
    if place not in PLACES:
        raise argument_error("place", place, tr("Choose one of: {names}.").format(names=join_names(PLACES)))
    several = value if isinstance(value, Iterable) and not isinstance(value, str | bytes) else [value]
    found = tuple(_as_pattern(one, place, ignores_case) for one in several)
    if not found:
        raise argument_error("pattern", value, tr("Pass at least one text."))
    for one in found:
        PatternAutomaton(one)
    return found


def _as_pattern(value: object, place: Place, ignores_case: bool) -> TextPattern:
    if isinstance(value, TextPattern):
        return value
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        flags = "".join(letter for letter, flag in _FLAG_LETTERS.items() if value.flags & flag)
        return TextPattern(f"(?{flags}){value.pattern}" if flags else value.pattern, place, True, ignores_case)
    if not isinstance(value, str):
        raise argument_error("pattern", value, tr("Pass a text, a compiled regular expression, or a list of them."))
    return TextPattern(value, place, False, ignores_case)


_FLAG_LETTERS = {"a": re.ASCII, "i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}


class _GuardedStep(NamedTuple):
    """A step without a character, under a condition on the characters before and after."""

    guard: Guard
    target: int


@dataclass(slots=True)
class _State:
    """A state of the nondeterministic automaton: it reads a character, or goes on without one."""

    accepts: Callable[[str], bool] | None = None
    target: int = -1
    free: list[int] = field(default_factory=list)
    guarded: list[_GuardedStep] = field(default_factory=list)


_Item = tuple[int, int]
"""A state, and what may still follow."""
_Key = tuple[frozenset[_Item], str]
"""States before the next character, and the character before; "" at the beginning."""


class PatternAutomaton:
    """Reads texts: states are numbers, and 0 is the state before the first character."""

    def __init__(self, pattern: TextPattern) -> None:
        """Build it. Raises ParameterError with the reason for an expression that cannot be used."""
        flags = re.IGNORECASE if pattern.ignores_case else 0
        try:
            re.compile(pattern.expression, flags)
            tree = parser.parse(pattern.expression, flags)
        except (re.error, OverflowError, RecursionError) as error:
            raise _pattern_error(pattern, tr("it is not valid: {error}").format(error=error)) from error
        self._pattern, self._states = pattern, list[_State]()
        self._is_ascii = bool(tree.state.flags & re.ASCII)
        self._final = self._new_state()
        accepts_any = self._new_state()
        self._states[accepts_any].accepts = _accept_any
        self._states[accepts_any].target = accepts_any
        self._rest = accepts_any if pattern.place != "full" else self._final
        self._states[accepts_any].free = [self._final] if pattern.place != "full" else []
        try:
            first = self._sequence(tree, tree.state.flags, self._rest)
        except RecursionError as error:
            raise _pattern_error(pattern, tr("it is nested too deeply")) from error
        if pattern.place == "contains":
            loop = self._new_state()
            self._states[loop] = _State(_accept_any, loop, [first])
            first = loop
        self._certain = self._certain_states()
        self._keys: list[_Key] = [(frozenset([(first, _FREE)]), "")]
        self._numbers: dict[_Key, int] = {self._keys[0]: 0}
        self._steps: dict[tuple[int, str], int] = {}
        self._accepts: dict[int, bool] = {}

    def step(self, state: int, character: str) -> int:
        """Return the state after a further character."""
        found = self._steps.get((state, character))
        if found is None:
            items, before = self._keys[state]
            following: set[_Item] = set()
            for number, mode in self._closure(items, before, character):
                own = self._states[number]
                if own.accepts is None or mode == _CLOSED or (mode == _LAST_BREAK and character != "\n"):
                    continue
                if own.accepts(character):
                    following.add((own.target, _CLOSED if mode == _LAST_BREAK else mode))
            # Only whether it is a letter or a line break matters to later conditions.
            kept = "\n" if character == "\n" else "a" if self._is_word(character) else " "
            found = self._steps[state, character] = self._number((frozenset(following), kept))
        return found

    def read(self, state: int, text: str) -> int:
        """Return the state after a further text."""
        for character in text:
            state = self.step(state, character)
        return state

    def accepts(self, state: int) -> bool:
        """Return whether the text matches if it ends here."""
        if state not in self._accepts:
            items, before = self._keys[state]
            self._accepts[state] = any(number == self._final for number, _ in self._closure(items, before, ""))
        return self._accepts[state]

    def is_certain(self, state: int) -> bool:
        """Return whether the text matches whatever follows."""
        items, before = self._keys[state]
        if any(mode == _FREE and number in self._certain for number, mode in items):
            return True
        return any(mode == _FREE and number in self._certain for number, mode in self._closure(items, before, None))

    def is_impossible(self, state: int) -> bool:
        """Return whether the text does not match whatever follows."""
        return not self._keys[state][0]

    def _number(self, key: _Key) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self._keys)
            self._keys.append(key)
        return self._numbers[key]

    def _closure(self, items: Iterable[_Item], before: str, after: str | None) -> set[_Item]:
        """Return all states reached without a character. `after` is the next character: "" for the end, None if it is
        unknown, so that no condition on it holds.
        """
        found, waiting = set[_Item](), list(items)
        while waiting:
            item = waiting.pop()
            if item in found:
                continue
            found.add(item)
            number, mode = item
            state = self._states[number]
            waiting.extend((target, mode) for target in state.free)
            for guard, target in state.guarded:
                if (own := self._guarded_mode(guard, mode, before, after)) is not None:
                    waiting.append((target, own))
        return found

    def _guarded_mode(self, guard: Guard, mode: int, before: str, after: str | None) -> int | None:
        """Return what may follow after a condition holds between two characters; None if it does not hold."""
        if guard == "start":
            return mode if before == "" else None
        if guard == "line_start":
            return mode if before in ("", "\n") else None
        if guard == "end":
            return _CLOSED
        if guard == "end_or_break":
            return max(mode, _LAST_BREAK)
        if after is None:
            return None
        if guard == "line_end":
            return mode if after in ("", "\n") else None
        if before == after == "":
            return mode if guard == "no_boundary" and _EMPTY_HAS_NO_BOUNDARY else None
        return mode if (self._is_word(before) != self._is_word(after)) == (guard == "boundary") else None

    def _is_word(self, character: str) -> bool:
        return (character.isalnum() or character == "_") and (character.isascii() or not self._is_ascii)

    def _certain_states(self) -> frozenset[int]:
        """Return the states that read any further text and always match: those with a loop over all characters from
        which the end is reached without conditions.
        """
        found = set[int]()
        for number, state in enumerate(self._states):
            if state.accepts is _accept_any and state.target >= 0:
                after = self._free_closure(state.target)
                if number in after and self._final in after:
                    found |= {number} if self._final in self._free_closure(number) else set()
                    found |= {one for one in after if {number, self._final} <= self._free_closure(one)}
        return frozenset(found)

    def _free_closure(self, number: int) -> set[int]:
        found, waiting = set[int](), [number]
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting.extend(self._states[one].free)
        return found

    def _new_state(self) -> int:
        if len(self._states) >= _MAX_STATES:
            raise _pattern_error(self._pattern, tr("its counted repetitions are too long"))
        self._states.append(_State())
        return len(self._states) - 1

    def _sequence(self, parts: ParsedPart, flags: int, target: int) -> int:
        """Return the state that reads `parts` and goes on to `target`."""
        for kind, value in reversed(list(parts)):
            target = self._part(kind, value, flags, target)
        return target

    def _part(self, kind: ParsedPart, value: ParsedPart, flags: int, target: int) -> int:
        if kind in (constants.LITERAL, constants.NOT_LITERAL, constants.IN, constants.ANY):
            state = self._new_state()
            self._states[state] = _State(_character_test(kind, value, flags), target)
            return state
        if kind is constants.SUBPATTERN:
            _, added, removed, inner = value
            return self._sequence(inner, (flags | added) & ~removed, target)
        if kind is constants.BRANCH:
            starts = [self._sequence(branch, flags, target) for branch in value[1]]
            state = self._new_state()
            self._states[state].free = starts
            return state
        if kind in (constants.MAX_REPEAT, constants.MIN_REPEAT):
            low, high, inner = value
            return self._repeat(low, high, inner, flags, target)
        if kind is constants.AT:
            state = self._new_state()
            self._states[state].guarded = [_GuardedStep(_guard(value, flags), target)]
            return state
        names = {
            constants.GROUPREF: tr("it refers to a group"), constants.GROUPREF_EXISTS: tr("it refers to a group"),
            constants.ASSERT: tr("it looks ahead or back"), constants.ASSERT_NOT: tr("it looks ahead or back"),
            constants.ATOMIC_GROUP: tr("it has an atomic group"),
            constants.POSSESSIVE_REPEAT: tr("it has a possessive repetition"),
        }  # fmt: skip
        raise _pattern_error(self._pattern, names.get(kind, str(kind)))

    def _repeat(self, low: int, high: ParsedPart, inner: ParsedPart, flags: int, target: int) -> int:
        if high is constants.MAXREPEAT:
            loop = self._new_state()
            body = self._sequence(inner, flags, loop)
            self._states[loop].free = [body, target]
            start = loop
        else:
            start = target
            for _ in range(int(high) - low):
                state = self._new_state()
                self._states[state].free = [self._sequence(inner, flags, start), target]
                start = state
        for _ in range(low):
            start = self._sequence(inner, flags, start)
        return start


def _pattern_error(pattern: TextPattern, reason: str) -> ParameterError:
    return ParameterError(
        tr("The pattern {pattern} cannot be used: {reason}.").format(pattern=short_repr(pattern.text), reason=reason),
        tr("Correct it. Texts, classes, repetitions, groups, alternatives and anchors are supported."),
        "pattern",
    )


def _accept_any(_character: str) -> bool:
    return True


def _guard(kind: ParsedPart, flags: int) -> Guard:
    has_lines = bool(flags & re.MULTILINE)
    guards: dict[ParsedPart, Guard] = {
        constants.AT_BEGINNING: "line_start" if has_lines else "start", constants.AT_BEGINNING_STRING: "start",
        constants.AT_END: "line_end" if has_lines else "end_or_break", constants.AT_END_STRING: "end",
        constants.AT_BOUNDARY: "boundary", constants.AT_NON_BOUNDARY: "no_boundary",
    }  # fmt: skip
    return guards[kind]


def _character_test(kind: ParsedPart, value: ParsedPart, flags: int) -> Callable[[str], bool]:
    """Return the test of one character for a part of an expression."""
    if kind is constants.ANY:
        return _accept_any if flags & re.DOTALL else _is_no_break
    if kind is constants.LITERAL:
        source, negated = _class_item(constants.LITERAL, value), ""
    elif kind is constants.NOT_LITERAL:
        source, negated = _class_item(constants.LITERAL, value), "^"
    else:
        negated = "^" if value and value[0][0] is constants.NEGATE else ""
        source = "".join(_class_item(*item) for item in value if item[0] is not constants.NEGATE)
    kept = flags & (re.IGNORECASE | re.ASCII)
    return _Membership(re.compile(f"[{negated}{source}]", kept | re.DOTALL))


_CATEGORIES = {
    constants.CATEGORY_DIGIT: r"\d", constants.CATEGORY_NOT_DIGIT: r"\D", constants.CATEGORY_SPACE: r"\s",
    constants.CATEGORY_NOT_SPACE: r"\S", constants.CATEGORY_WORD: r"\w", constants.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip


def _class_item(kind: ParsedPart, value: ParsedPart) -> str:
    """Return a part of a character class in the syntax of `re`."""
    if kind is constants.CATEGORY:
        return _CATEGORIES[value]
    if kind is constants.RANGE:
        return "-".join(f"\\U{code:08x}" for code in value)
    return f"\\U{value:08x}"


def _is_no_break(character: str) -> bool:
    return character != "\n"


class _Membership:
    """Test whether a character is in a class, by `re` itself; results are kept."""

    def __init__(self, expression: re.Pattern[str]) -> None:
        self._matches = expression.fullmatch
        self._known: dict[str, bool] = {}

    def __call__(self, character: str) -> bool:
        found = self._known.get(character)
        if found is None:
            found = self._known[character] = self._matches(character) is not None
        return found


def matches(patterns: Sequence[TextPattern], text: str) -> list[bool]:
    """Return for each pattern whether a finished text matches."""
    automata = [PatternAutomaton(pattern) for pattern in patterns]
    return [one.accepts(one.read(0, text)) for one in automata]
