"""GBNF grammars: the texts that they accept compared with llama.cpp's own reader, and the positions of errors."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from decodescope import core
from decodescope.core.grammar.compilation import GrammarVocabulary, matcher_for
from decodescope.core.grammar.gbnf import GbnfError, to_lark
from decodescope.core.grammar.grammar_setting import grammar_format_problem

JSON = r"""
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws (string ":" ws value ("," ws string ":" ws value)*)? "}" ws
array  ::= "[" ws (value ("," ws value)*)? "]" ws
string ::= "\"" ([^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}))* "\"" ws   # like JSON's
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws     ::= | " " | "\n" [ \t]{0,20}
"""
CASES: dict[str, tuple[str, list[str]]] = {
    "json": (JSON, ['{"a": [1, -2.5e+3, null]}', '{"a":}', "{}", '{"é\\u00e9": "\\n"}', "[1]", '{"a": tru}']),
    "letter that a star also matches": ('root ::= [a-z]* "z"', ["z", "zz", "abz", "ab", ""]),
    "words with a common beginning": ('root ::= ("in" | "int" | "integer") "t"?', ["in", "int", "intt", "inte"]),
    "recursion": ('root ::= "(" root ")" | "x"', ["x", "(x)", "((x))", "(x", "()"]),
    "arithmetic": (
        'root ::= (expr "=" term "\\n")+\nexpr ::= term ([-+*/] term)*\nterm ::= num | "(" expr ")"\nnum ::= [0-9]+',
        ["1+2=3\n", "(1+2)*3=9\n1=1\n", "1+=2\n", "=\n", "1=1"],
    ),
    "any character": ('root ::= "<" .{2,3} ">"', ["<ab>", "<é\n>", "<abc>", "<a>", "<abcd>", "<🙂🙂>"]),
    "other scripts": ("root ::= [ぁ-んァ-ヶ]+ [^a-z]", ["ひらカ.", "ひらa", "ひ猫", "ひ"]),
    "escapes": (
        'root ::= "\\x41\\u00e9\\U0001F642" [\\]\\[\\\\^-] "\\t\\r\\n\\""',
        ['Aé🙂]\t\r\n"', 'Aé🙂^\t\r\n"', 'Aé🙂-\t\r\n"', 'Aé🙂a\t\r\n"'],
    ),
    "hyphen at the end of a set": ("root ::= [a-]{2}", ["a-", "--", "b-"]),
    "nested repetition": ('root ::= (("a"? "b"){2} "c"*){1,2}', ["bb", "abbcc", "bbbb", "bab", "b", "bbbbb"]),
    "repeated text": ('root ::= "ab"+ "c"{2,}', ["abcc", "ababccc", "aabcc", "abc"]),
    "nothing": ('root ::= "" | "a" ""', ["", "a", "aa"]),
    "zero times": ('root ::= "a"{0} "b"{0,1}', ["", "b", "a"]),
    "lines and comments": (
        '# first\n\nroot ::=  # here\n  "a" |\n  # there\n  second-1\r\nsecond-1 ::= (\n "b"\n | "c" ) # end',
        ["a", "b", "c", "d"],
    ),
    "empty alternative": ('root ::= "a" x "b"\nx ::= "c" |', ["acb", "ab", "ac"]),
}
"""Grammars with texts of which some are accepted."""


@cache
def _library() -> ctypes.CDLL:
    xllamacpp = pytest.importorskip("xllamacpp")
    (path,) = Path(xllamacpp.__file__).parent.glob("xllamacpp*.so")
    library = ctypes.CDLL(str(path))
    pointer = ctypes.c_void_p
    for name, result, arguments in (
        ("_Z23llama_grammar_init_implPK11llama_vocabPKcS3_bPS3_mPKim", pointer,
         (pointer, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_bool, pointer, ctypes.c_size_t, pointer,
          ctypes.c_size_t)),
        ("_Z20llama_grammar_acceptP13llama_grammarj", None, (pointer, ctypes.c_uint32)),
        ("_Z24llama_grammar_get_stacksP13llama_grammar", pointer, (pointer,)),
        ("_Z23llama_grammar_free_implP13llama_grammar", None, (pointer,)),
    ):  # fmt: skip
        if not hasattr(library, name):
            pytest.skip("this build of llama.cpp does not export its grammar reader")
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


@contextmanager
def llama_cpp_acceptor(grammar: str) -> Iterator[Callable[[str], bool | None] | None]:
    """Yield a function that returns whether llama.cpp accepts a text: None for the beginning of one. None if it
    refuses the grammar.
    """
    library = _library()

    def stack_lengths(handle: int) -> list[int]:
        """Return the number of elements of each stack; an empty stack stands for a complete text."""
        outer = ctypes.cast(library._Z24llama_grammar_get_stacksP13llama_grammar(handle), _POINTERS)
        inner = (ctypes.cast(each, _POINTERS) for each in range(outer[0] or 0, outer[1] or 0, _VECTOR_BYTES))
        return [(each[1] or 0) - (each[0] or 0) for each in inner]

    def start() -> int:
        name = "_Z23llama_grammar_init_implPK11llama_vocabPKcS3_bPS3_mPKim"
        return int(getattr(library, name)(None, grammar.encode(), b"root", False, None, 0, None, 0) or 0)

    def accepts(text: str) -> bool | None:
        handle = start()
        try:
            for sign in text:
                library._Z20llama_grammar_acceptP13llama_grammarj(handle, ord(sign))
                if not stack_lengths(handle):
                    return False
            return True if 0 in stack_lengths(handle) else None
        finally:
            library._Z23llama_grammar_free_implP13llama_grammar(handle)

    probe = start()
    if probe:
        library._Z23llama_grammar_free_implP13llama_grammar(probe)
    yield accepts if probe else None


_POINTERS = ctypes.POINTER(ctypes.c_void_p)
_VECTOR_BYTES = 24
"""Bytes of a `std::vector` on 64-bit systems."""
BYTES = GrammarVocabulary([bytes([byte]) for byte in range(256)], str)
"""A vocabulary in which every byte is a token."""


def acceptor(grammar: str) -> Callable[[str], bool | None]:
    """Return the same function for the program's reader."""
    matcher = matcher_for(BYTES, {"gbnf": grammar}, False)

    def accepts(text: str) -> bool | None:
        reading, data = matcher.deep_copy(), list(text.encode())
        if reading.try_consume_tokens(data) < len(data):
            return False
        return True if reading.is_accepting() else None

    return accepts


@pytest.mark.parametrize("name", CASES)
def test_gbnf_with_texts_accepts_the_same_as_llama_cpp(name: str) -> None:
    grammar, texts = CASES[name]
    ours = acceptor(grammar)
    with llama_cpp_acceptor(grammar) as reference:
        assert reference is not None
        expected = {text: reference(text) for text in texts}
    assert {text: ours(text) for text in texts} == expected
    assert True in expected.values()
    assert len(set(expected.values())) > 1


def _random_grammar(rng: random.Random) -> str:
    def item(depth: int) -> str:
        kind = rng.randrange(8 if depth else 6)
        made = (
            f'"{"".join(rng.choices("abc", k=rng.randrange(1, 4)))}"' if kind < 2
            else rng.choice(("[a-b]", "[^a]", "[abc]", ".")) if kind == 2
            else rng.choice(("x", "y", "z")) if kind < 5
            else '""' if kind == 5
            else f"({alternatives(depth - 1)})"
        )  # fmt: skip
        if made == '""':  # llama.cpp does not repeat it
            return made
        if made.startswith("("):  # llama.cpp does not repeat groups that may be empty
            return made + rng.choice(("", "?"))
        return made + rng.choice(("", "", "", "*", "+", "?", "{2}", "{1,2}", "{2,}"))

    def alternatives(depth: int) -> str:
        return " | ".join(" ".join(item(depth) for _ in range(rng.randrange(1, 4))) for _ in range(rng.randrange(1, 4)))

    def rule() -> str:
        """Return alternatives that begin with a character: neither program has to read left recursion."""
        firsts = rng.choices(("[ab]", '"c"', '"ab"', "[^c]"), k=2)
        parts = [f"{first} ({alternatives(1)})" for first in firsts]
        return " | ".join((*parts, f'"{rng.choice("abc")}"'))  # the last one has no recursion

    return "\n".join(f"{name} ::= {rule()}" for name in ("root", "x", "y", "z"))


@pytest.mark.parametrize("seed", range(30))
def test_gbnf_made_at_random_accepts_the_same_as_llama_cpp(seed: int) -> None:
    rng = random.Random(seed)
    grammar = _random_grammar(rng)
    ours = acceptor(grammar)
    with llama_cpp_acceptor(grammar) as reference:
        if reference is None:
            pytest.skip("llama.cpp does not read groups that may be empty and repeat themselves")
        for _ in range(8):
            text = ""
            while len(text) < 8:
                options = [sign for sign in "abcd" if reference(text + sign) is not False]
                assert [sign for sign in "abcd" if ours(text + sign) is not False] == options, (grammar, text)
                assert ours(text) == reference(text), (grammar, text)
                if not options:
                    break
                text += rng.choice(options)


@pytest.mark.parametrize(
    ("grammar", "line", "column", "rule"),
    [
        ('root ::= "a', 1, 10, "root"),
        ('root ::= "a"\nx ::= [a-', 2, 7, "x"),
        ('root ::= "a" | b\n', 1, 16, "root"),
        ('rule ::= "a"', 1, 1, ""),
        ("root = a", 1, 6, "root"),
        ("root ::= (a\n", 1, 10, "root"),
        ('root ::= "a")', 1, 13, "root"),
        ('root ::= * "a"', 1, 10, "root"),
        ('root ::= "a"{2,1}', 1, 13, "root"),
        ('root ::= "a"{x}', 1, 13, "root"),
        ('root ::= "a"{2001}', 1, 14, "root"),
        ('root ::= "\\q"', 1, 11, "root"),
        ('root ::= "\\u12"', 1, 11, "root"),
        ("root ::= under_score\n", 1, 15, "root"),
        ('root ::= "a"\nroot ::= "b"', 2, 1, "root"),
        ("root ::= []", 1, 10, "root"),
        ("root ::= <a", 1, 10, "root"),
        ("root ::= <[a]>", 1, 10, "root"),
        ("root ::= " + "(" * 200, 1, 111, "root"),
    ],
)
def test_gbnf_that_is_wrong_names_line_column_and_rule(grammar: str, line: int, column: int, rule: str) -> None:
    with pytest.raises(GbnfError) as refused:
        to_lark(grammar)
    assert (refused.value.line, refused.value.column, refused.value.rule) == (line, column, rule)
    assert grammar_format_problem({"gbnf": grammar}).startswith(f"Line {line}, column {column}")


def test_run_with_gbnf_writes_a_text_of_the_grammar() -> None:
    grammar = 'root ::= " " name " and " name "."\nname ::= [A-Z] [a-z]{2,8}'
    request = core.Request("Once upon a time there were", {"do_sample": True, "max_new_tokens": 30},
                           options={"grammar": {"gbnf": grammar}}, seed=4)  # fmt: skip
    text = core.run(core.load("storyteller"), request).texts[0]
    with llama_cpp_acceptor(grammar) as reference:
        assert reference is not None
        assert reference(text) is True


def test_gbnf_with_a_token_of_the_model_ends_with_it() -> None:
    model = core.load("storyteller")
    end = model.tokenizer.eos_token_id
    request = core.Request("Once", {"max_new_tokens": 8}, options={"grammar": {"gbnf": f'root ::= " upon" <[{end}]>'}})
    assert core.run(model, request).sequences[0][-1] == end


def test_gbnf_without_an_end_is_refused() -> None:
    request = core.Request("Once", {"max_new_tokens": 8}, options={"grammar": {"gbnf": 'root ::= "a" root'}})
    with pytest.raises(core.errors.ParameterError, match="never allow a text to end"):
        core.run(core.load("storyteller"), request)
