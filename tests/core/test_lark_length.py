"""Minimum length of texts of a Lark grammar: known grammars, and random ones with texts that they accept."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from decodescope import core
from decodescope.core.errors import ParameterError
from decodescope.core.grammar.compilation import GrammarVocabulary, matcher_for
from decodescope.core.grammar.shortest_text import TokenCoverage, min_tokens
from decodescope.core.models.token_bytes import token_bytes
from tests.core import spelling_models

LETTERS = [bytes([code]) for code in range(256)]
"""Tokens of one letter each, so that every letter counts."""


@pytest.mark.parametrize(
    ("lark", "least"),
    [
        ('start: "abc" "de"', 5),
        ('start: a | b\na: "xxxx"\nb: "yyy" // the shorter: one', 3),
        ('start: a+ b?\na: "xx"\nb: "y"', 2),
        ('start: "ab" ~ 3..5 "c"{2,} "d"~2', 10),
        ('start: ("a" | "bb") ["c"] ("d")*  -> named', 1),
        ('start: "(" start ")" | "xyz"', 3),
        ('start: /[a-c]{4}/ WORD\nWORD: /\\d+/ "!"\n%ignore /\\s+/', 6),
        ('start: "a".."z" "straße"i', 7),
        ('?start.2: item ("," item)*\n!item: NUMBER\nNUMBER: /[0-9]{3}/', 3),
        ('start: %json {"type": "object", "required": ["a"], "properties": {"a": {"const": "x"}}} "."', 10),
        ('start: A & B\nA: /a{3}.*/\nB: /.*b{5}/', 5),
        ('start: "é"', 2),
        ('%import common.INT\nstart: "ab" INT', 2),
        ("start: <|end|> \"abc\"", 3),
        ('start: "a"\n  | "b" // c: d\n  | ""', 0),
        ('start[max_tokens=2]: "abcdef"', 0),
        ('start: a "b"\na[stop="x"]: /.{9}/', 1),
        ('start: @other "ab"', 2),
        ('start: ~"abc" "d"', 1),
        ("start: (", 0),
        ('start: a::x "abc"', 0),
        ('start: "abc', 0),
        ("no grammar", 0),
        ("", 0),
        ('start: /(?x) a b c/x', 0),
        ('start: %regex {"substring_words": "a b"}', 0),
    ],
)  # fmt: skip
def test_minimum_length_of_a_lark_grammar(lark: str, least: int) -> None:
    assert min_tokens({"lark": lark}, LETTERS, 0) == least


@pytest.mark.parametrize(
    "lark", ['start: "a" start', 'start: a b\na: "x"\nb: "(" c ")"\nc: b | "[" b "]"', 'start: start']
)  # fmt: skip
def test_endless_rules_have_no_minimum_length(lark: str) -> None:
    assert min_tokens({"lark": lark}, LETTERS, 5) is None


def test_long_chains_of_rules_are_resolved() -> None:
    chain = "\n".join(f'r{n}: r{n + 1} "a"' for n in range(300))
    assert min_tokens({"lark": f'start: r0\n{chain}\nr300: "b"'}, LETTERS, 0) == 301
    backwards = "\n".join(f'r{n}: r{n - 1} "a"' for n in range(1, 100))
    assert min_tokens({"lark": f'r0: "b"\n{backwards}\nstart: r99'}, LETTERS, 0) == 100


def test_too_small_limit_or_endless_rules_are_refused_before_the_run() -> None:
    model = spelling_models.model()
    request = core.Request([5, 9], {"max_new_tokens": 4}, options={"grammar": {"lark": 'start: "xyz" ~ 4'}})
    with pytest.raises(ParameterError, match="No text of the grammar fits into 4 new tokens"):
        core.run(model, request)
    endless = core.Request([5, 9], {"max_new_tokens": 4}, options={"grammar": {"lark": 'start: "xyz" start'}})
    with pytest.raises(ParameterError, match="these rules never allow a text to end"):
        core.run(model, endless)


Draw = Callable[[int], str]
"""A text that a part accepts, at a depth."""


class RandomGrammar:
    """A random grammar: its text, and texts that it accepts, drawn by walking down its rules."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.names = [f"r{n}" for n in range(self.dice.randint(1, 4))]
        self.draws: dict[str, list[Draw]] = {}
        lines = []
        for name in ["start", *self.names]:
            ways = [self.row(2) for _ in range(self.dice.randint(1, 3))]
            ways.append(self.leaf())  # so that every rule has an end
            self.draws[name] = [draw for _, draw in ways]
            lines.append(f"{name}: " + "\n  | ".join(text for text, _ in ways))
        self.text = "\n".join(lines)

    def rule(self, name: str) -> Draw:
        return lambda depth: (self.dice.choice(self.draws[name]) if depth < 2 else self.draws[name][-1])(depth + 1)

    def leaf(self) -> tuple[str, Draw]:
        word = "".join(self.dice.choice("abxyz ") for _ in range(self.dice.randint(0, 5)))
        count = self.dice.randint(1, 4)
        return self.dice.choice([
            (f'"{word}"', lambda _: word),
            (f"/[xy]{{{count}}}z?/", lambda _: "".join(self.dice.choice("xy") for _ in range(count))),
            ('"a".."d"', lambda _: self.dice.choice("abcd")),
            ("/(ab|c)+/", lambda _: self.dice.choice(["ab", "c", "cab"])),
        ])  # fmt: skip

    def row(self, deep: int) -> tuple[str, Draw]:
        parts = [self.part(deep) for _ in range(self.dice.randint(1, 3))]
        return " ".join(text for text, _ in parts), lambda depth: "".join(draw(depth) for _, draw in parts)

    def part(self, deep: int) -> tuple[str, Draw]:
        kind = self.dice.choice(["leaf", "rule", "group", "optional", "star", "plus", "times", "between"])
        if kind == "leaf" or not deep:
            return self.leaf()
        if kind == "rule":
            name = self.dice.choice(self.names)
            return name, self.rule(name)
        text, draw = self.row(deep - 1)
        sign, least, most = {
            "group": ("", 1, 1), "optional": ("?", 0, 1), "star": ("*", 0, 2), "plus": ("+", 1, 2),
            "times": ("~2", 2, 2), "between": ("{1,3}", 1, 3),
        }[kind]  # fmt: skip
        return f"({text}){sign}", lambda d: "".join(draw(d) for _ in range(self.dice.randint(least, most)))


@pytest.mark.parametrize("seed", range(40))
def test_generated_texts_are_not_shorter_than_the_minimum(seed: int) -> None:
    made = RandomGrammar(seed)
    texts = [text for text in {made.rule("start")(0) for _ in range(60)} if len(text) < 60]
    assert texts
    own = token_bytes(spelling_models.model())
    for vocabulary in (LETTERS, own):
        least = min_tokens({"lark": made.text}, vocabulary, 0)
        covering = TokenCoverage(vocabulary)
        assert least is not None, made.text
        assert all(least <= covering.min_spelling(text.encode()) for text in texts), made.text


@pytest.mark.parametrize("seed", range(30))
def test_texts_accepted_by_llguidance_are_not_shorter(seed: int) -> None:
    """Random walks along what its mask allows; wherever a text may end, it is one."""
    made = RandomGrammar(seed)
    least = min_tokens({"lark": made.text}, LETTERS, 0)
    assert least is not None
    vocabulary = GrammarVocabulary([*LETTERS, None], str, (256,), {})
    for _ in range(10):
        matcher = matcher_for(vocabulary, {"lark": made.text}, False)
        for length in range(25):
            assert not matcher.is_accepting() or least <= length, made.text
            allowed = [byte for byte, bias in enumerate(matcher.compute_logit_bias()[:256]) if bias]
            if not allowed or not matcher.consume_token(made.dice.choice(allowed)):
                break


PIECES = [*LETTERS, b"ab", b"abb", b"abba", b"0a", b"ggggggggg", b"11", b"ba-"]
"""Single letters, and some longer tokens."""


@pytest.mark.parametrize(
    ("grammar", "least"),
    [
        ({"regex": "[0-9]{60}"}, 30),  # 11, 11, …
        ({"regex": r"[0-4][5-9]{8}x"}, 8),
        ({"regex": "ab+c"}, 1),  # abb + c, not a + b + c
        ({"regex": "[ab]{12}"}, 3),
        ({"regex": "[^g]{12}"}, 3),
        ({"regex": "[a-c&&b]{12}"}, 2),
        ({"regex": r"c{9}[\-b-]{4}"}, 10),
        ({"json_schema": {"type": "string", "pattern": "^[0-9]{60}$"}}, 30),
        ({"json_schema": {"type": "string", "format": "date"}}, 5),
        ({"lark": 'start: "c"~100'}, 100),
        ({"lark": 'start: /[01]{20}/'}, 10),
        ({"lark": 'start: /[01]{20}/i'}, 3),
    ],
)  # fmt: skip
def test_repeated_classes_use_the_longest_tokens(grammar: dict[str, object], least: int) -> None:
    assert min_tokens(grammar, PIECES, 0) == least


@pytest.mark.parametrize("seed", range(150))
def test_regex_matches_do_not_take_fewer_tokens(seed: int) -> None:
    """Matches drawn as the pattern is made, spelled in as few tokens as can be."""
    dice = random.Random(seed)

    def item() -> tuple[str, Callable[[], str]]:
        word = "".join(dice.choice("abgx01-") for _ in range(dice.randint(1, 3)))
        sign, letters = dice.choice([("[0-9]", "0123456789"), ("[a-b]", "ab"), ("[^g-]", "ab01x"), (".", "abg01"),
                                     (r"\d", "01"), ("[ag]", "ag"), ("b", "b")])  # fmt: skip
        pattern, draw = dice.choice([(sign, lambda: dice.choice(letters)), (word, lambda: word)])
        if pattern == word and len(word) > 1:
            return pattern, draw
        shape, low, high = dice.choice(
            [("", 1, 1), ("+", 1, 3), ("*", 0, 2), ("?", 0, 1), ("{3}", 3, 3), ("{2,}", 2, 5)]
        )
        return pattern + shape, lambda: "".join(draw() for _ in range(dice.randint(low, high)))

    parts = [item() for _ in range(dice.randint(1, 5))]
    pattern = "".join(text for text, _ in parts)
    least = min_tokens({"regex": pattern}, PIECES, 0)
    assert least is not None
    covering = TokenCoverage(PIECES)
    for _ in range(40):
        match = "".join(draw() for _, draw in parts)
        assert least <= covering.min_spelling(match.encode()), (pattern, match)
