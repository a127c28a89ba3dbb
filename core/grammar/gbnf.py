"""Read GBNF, the grammar notation of llama.cpp, and translate it to a Lark grammar for llguidance.

GBNF has no lexer: every character is a symbol of its own. The translation keeps that. Each terminal stands for exactly
one character, because llguidance reads a longer one greedily, so that `[a-z]* "z"` would match nothing.
The notation is described in llama.cpp's `grammars/README.md`; `tests/core/test_gbnf.py` compares both programs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from decodescope.resources.language import tr

MAX_NESTING = 100
"""Maximum depth of nested parentheses."""
MAX_REPETITIONS = 2_000
"""Maximum number in `{m,n}`, as in llama.cpp."""
_ROOT = "root"
_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "[": "[", "]": "]"}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_EMPTY = '""'


class GbnfError(ValueError):
    """A grammar that cannot be read, with its position: line and column count from 1."""

    def __init__(self, reason: str, line: int, column: int, rule: str = "") -> None:
        self.reason, self.line, self.column, self.rule = reason, line, column, rule
        where = (
            tr("line {line}, column {column}, in the rule {rule}: {reason}.")
            if rule
            else tr("line {line}, column {column}: {reason}.")
        )
        super().__init__(where.format(line=line, column=column, rule=rule, reason=reason))


@lru_cache(maxsize=32)
def to_lark(grammar: str) -> str:
    """Return a Lark grammar with the same texts; its rule `start` is the grammar's `root`. Raises GbnfError."""
    return _GrammarReader(grammar).read()


def gbnf_problem(grammar: str) -> str:
    """Return why the grammar cannot be read, as a sentence with line, column and rule; empty if it can."""
    try:
        to_lark(grammar)
    except GbnfError as error:
        return str(error)[:1].upper() + str(error)[1:]
    return ""


@dataclass
class _GrammarReader:
    """Reads one grammar from left to right and writes the rules of the translation."""

    text: str
    position: int = 0
    rule: str = ""
    """Name of the rule that is read."""
    depth: int = 0
    names: dict[str, int] = field(default_factory=dict)
    """Names of the rules, defined or used, in the order in which they occur."""
    used_at: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Position of the first use of each name, and the rule that uses it."""
    bodies: dict[str, str] = field(default_factory=dict)

    def read(self) -> str:
        self._skip_space(newlines=True)
        while self.position < len(self.text):
            self._read_rule()
        if _ROOT not in self.bodies:
            raise self._error(tr("there is no rule named root, with which every text begins"), 0, "")
        for name, (position, rule) in self.used_at.items():
            if name not in self.bodies:
                raise self._error(tr("the rule {name} is used but not defined").format(name=name), position, rule)
        return "\n".join(f"{self._lark_name(name)}: {body}" for name, body in self.bodies.items())

    def _read_rule(self) -> None:
        start = self.position
        self.rule = name = self._read_name()
        if not name:
            raise self._error(tr("a rule must begin with its name: letters, digits and hyphens"))
        self._skip_space()
        if not self._take("::="):
            raise self._error(tr("“::=” must follow the name of a rule"))
        if name in self.bodies:
            raise self._error(tr("the rule {name} is defined twice").format(name=name), start)
        self._skip_space(newlines=True)
        self.bodies[name] = self._read_alternatives(nested=False)
        if self.position < len(self.text) and not (self._take("\r\n") or self._take("\n")):
            raise self._error(
                tr("the rule must end with a line break, but {sign} follows").format(sign=self._quote(self._next()))
            )
        self._skip_space(newlines=True)

    def _read_alternatives(self, nested: bool) -> str:
        parts = [self._read_sequence(nested)]
        while self._take("|"):
            self._skip_space(newlines=True)
            parts.append(self._read_sequence(nested))
        return " | ".join(parts)

    def _read_sequence(self, nested: bool) -> str:
        items: list[str] = []
        while self.position < len(self.text):
            sign = self._next()
            if sign in "*+?{":
                if not items:
                    raise self._error(tr("{sign} must follow what it repeats").format(sign=f"“{sign}”"))
                items[-1] = self._repeat(items[-1])
            elif (item := self._read_item(sign)) is not None:
                items.append(item)
            else:
                break
            self._skip_space(newlines=nested)
        return " ".join(items) or _EMPTY

    def _read_item(self, sign: str) -> str | None:
        """Return one item of a sequence, which the position is moved past; None if none begins here."""
        if sign == '"':
            return self._read_literal()
        if sign == "[":
            return self._read_class()
        if sign == "(":
            return self._read_group()
        if sign == ".":
            self.position += 1
            return r"/(?s:.)/"
        if sign == "<" or self.text.startswith("!<", self.position):
            return self._read_token()
        if _is_name_sign(sign):
            start, name = self.position, self._read_name()
            self.used_at.setdefault(name, (start, self.rule))
            return self._lark_name(name)
        return None

    def _read_literal(self) -> str:
        start = self.position
        self.position += 1
        signs = []
        while self._next() != '"':
            signs.append(_lark_text(self._read_sign(start, tr("the text has no closing quotation mark"))))
        self.position += 1
        return _as_one(signs)

    def _read_class(self) -> str:
        start = self.position
        self.position += 1
        is_negated, ranges, unclosed = self._take("^"), list[tuple[str, str]](), tr("the set has no closing bracket")
        while self._next() != "]":
            first = last = self._read_sign(start, unclosed)
            if self._next() == "-" and self.text[self.position + 1 : self.position + 2] not in ("]", ""):
                self.position += 1
                last = self._read_sign(start, unclosed)
            ranges.append((first, last))
        self.position += 1
        # Like llama.cpp, a range that runs backwards contains nothing.
        inside = "".join(_class_range(first, last) for first, last in ranges if first <= last)
        if not inside:
            return r"/(?s:.)/" if is_negated else self._refuse(tr("the set is empty, so no text can match it"), start)
        return f"/[{'^' if is_negated else ''}{inside}]/"

    def _read_group(self) -> str:
        start = self.position
        self.position += 1
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise self._error(tr("parentheses are nested more than {most} levels deep").format(most=MAX_NESTING))
        self._skip_space(newlines=True)
        inside = self._read_alternatives(nested=True)
        if not self._take(")"):
            reason = tr("the group has no closing parenthesis")
            raise self._error(reason, start if self.position >= len(self.text) else None)
        self.depth -= 1
        return f"({inside})"

    def _read_token(self) -> str:
        """Read a token of the model: `<name>`, `<[id]>`, or all others: `!<name>`, `!<[id]>`."""
        start = self.position
        is_negated = self._take("!")
        end = self.text.find(">", self.position)
        name = self.text[self.position : end + 1]
        if end < 0 or len(name) < 3 or any(sign.isspace() for sign in name):
            raise self._error(tr("a token is written as <name> or <[id]>"), start)
        self.position = end + 1
        if name.startswith("<[") or name.endswith("]>"):
            if not (name.startswith("<[") and name.endswith("]>") and name[2:-2].isascii() and name[2:-2].isdigit()):
                raise self._error(tr("the id of a token is a number, as in <[2]>"), start)
            return f"<[^{name[2:-2]}]>" if is_negated else name
        if is_negated:
            self._refuse(tr("a token that is excluded must be given by its id, as in !<[2]>"), start)
        return name

    def _repeat(self, item: str) -> str:
        """Return the item with the repetition at the position, which is moved past it."""
        start, sign = self.position, self._next()
        self.position += 1
        if sign != "{":
            return f"{item}{sign}" if item[-1] not in "*+?}" else f"({item}){sign}"
        self._skip_space()
        least = self._read_number(start)
        self._skip_space()
        most: int | None = least
        if self._take(","):
            self._skip_space()
            most = self._read_number(start) if self._next().isdigit() else None
            self._skip_space()
        if not self._take("}"):
            raise self._error(tr("a repetition is written as {{m}}, {{m,}} or {{m,n}}").format(), start)
        if most is not None and most < least:
            raise self._error(tr("the repetition ends below its beginning"), start)
        if most == 0:
            return _EMPTY
        return f"({item}){{{least},{'' if most is None else most}}}"

    def _read_number(self, start: int) -> int:
        begin = self.position
        while self._next().isascii() and self._next().isdigit():
            self.position += 1
        digits = self.text[begin : self.position]
        if not digits:
            raise self._error(tr("a repetition is written as {{m}}, {{m,}} or {{m,n}}").format(), start)
        if len(digits) > 9 or int(digits) > MAX_REPETITIONS:
            raise self._error(tr("the maximum number of repetitions is {most:,}").format(most=MAX_REPETITIONS), begin)
        return int(digits)

    def _read_sign(self, start: int, unclosed: str) -> str:
        """Return one character of a text or a set. `unclosed`: the reason if the grammar ends before."""
        sign = self._next()
        if not sign:
            raise self._error(unclosed, start)
        self.position += 1
        if sign != "\\":
            return sign
        letter = self._next()
        if (count := _HEX_DIGITS.get(letter)) is not None:
            digits = self.text[self.position + 1 : self.position + 1 + count]
            if len(digits) < count or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
                raise self._error(
                    tr("{escape} must be followed by {count} hexadecimal digits").format(
                        escape=f"“\\{letter}”", count=count
                    ),
                    self.position - 1,
                )
            number = int(digits, 16)
            if number > 0x10FFFF or 0xD800 <= number < 0xE000:
                raise self._error(tr("there is no character with this number"), self.position - 1)
            self.position += 1 + count
            return chr(number)
        if letter not in _ESCAPES or not letter:
            raise self._error(tr("{escape} is not a known escape").format(escape=f"“\\{letter}”"), self.position - 1)
        self.position += 1
        return _ESCAPES[letter]

    def _read_name(self) -> str:
        start = self.position
        while self.position < len(self.text) and _is_name_sign(self.text[self.position]):
            self.position += 1
        return self.text[start : self.position]

    def _skip_space(self, newlines: bool = False) -> None:
        while self.position < len(self.text):
            sign = self.text[self.position]
            if sign == "#":
                end = self.text.find("\n", self.position)
                self.position = len(self.text) if end < 0 else end
                if self.text.endswith("\r", 0, self.position):
                    self.position -= 1
            elif sign in " \t" or (newlines and sign in "\r\n"):
                self.position += 1
            else:
                break

    def _next(self) -> str:
        return self.text[self.position : self.position + 1]

    def _take(self, sign: str) -> bool:
        """Move past `sign` if it is next."""
        is_next = self.text.startswith(sign, self.position)
        self.position += len(sign) * is_next
        return is_next

    def _lark_name(self, name: str) -> str:
        return "start" if name == _ROOT else f"rule{self.names.setdefault(name, len(self.names))}"

    def _refuse(self, reason: str, position: int) -> str:
        raise self._error(reason, position)

    def _error(self, reason: str, position: int | None = None, rule: str | None = None) -> GbnfError:
        position = self.position if position is None else position
        line = self.text.count("\n", 0, position) + 1
        column = position - (self.text.rfind("\n", 0, position) + 1) + 1
        return GbnfError(reason, line, column, self.rule if rule is None else rule)

    @staticmethod
    def _quote(sign: str) -> str:
        return f"“{sign}”" if sign.isprintable() else f"U+{ord(sign):04X}"


def _is_name_sign(sign: str) -> bool:
    return sign.isascii() and (sign.isalnum() or sign == "-")


def _as_one(items: list[str]) -> str:
    """Return several items as one that can be repeated."""
    return items[0] if len(items) == 1 else f"({' '.join(items)})" if items else _EMPTY


def _lark_text(sign: str) -> str:
    """Return a terminal for one character."""
    if sign.isascii() and sign.isprintable():
        return json.dumps(sign)
    return f"/{_regex_sign(sign)}/"


def _regex_sign(sign: str) -> str:
    return sign if sign.isascii() and sign.isalnum() else f"\\x{{{ord(sign):x}}}"


def _class_range(first: str, last: str) -> str:
    """Return a range of characters for a regular expression, without surrogates, which are no characters."""
    pairs: Iterator[tuple[str, str]] = iter(
        [(first, "\ud7ff"), ("\ue000", last)] if first < "\ud800" and last > "\udfff" else [(first, last)]
    )
    return "".join(
        _regex_sign(low) if low == high else f"{_regex_sign(low)}-{_regex_sign(high)}" for low, high in pairs
    )
