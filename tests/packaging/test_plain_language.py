"""Prose is plain English: docstrings, comments, UI texts and documents have no word that `BANNED` lists."""

from __future__ import annotations

import ast
import gc
import io
import re
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON_FOLDERS = ("core", "app", "resources", "packaging")
DOCUMENTS = ("*.md", "docs/**/*.md", "packaging/**/*.md", ".github/**/*.md", ".github/**/*.yml")
TOURS_AND_TERMS = ("resources/tours/*.toml", "resources/lessons/*.toml", "resources/glossary/*.toml")

BANNED = {
    r"reckon(s|ed|ing|ings)?": "estimate, compute",
    r"anew": "again",
    r"fore(tell|tells|told|telling)": "estimate, predict",
    r"who(m)?ever": "name the reader: “users who …”",
    r"nobody|somebody": "name the person or the part of the program",
    r"of now": "current",
    r"so many": "give the number, or “too many”",
    r"behind it|beside it": "after it, next to it",
    r"nothing is done twice": "say what is cached",
    r"errands?": "task",
    r"quicken(s|ed|ing)?": "build kernels",
    r"lives? off": "import, use",
}
"""Words to avoid → what to write instead."""
OPENINGS = re.compile(r"(What|Whatever|Of|Whose|Why|How|Which|Where|Who|All about) ")
"""A docstring of a class, function or module starts with a verb or with what the object is, not with a fragment."""
CALLS = {"tr": (0,), "mark": (0,), "trn": (0, 1), "trc": (1,)}
"""The functions that take texts of the interface, and the positions of those texts."""

_PATTERN = re.compile(rf"\b(?:{'|'.join(BANNED)})\b", re.IGNORECASE)
_ANYWHERE = re.compile(_PATTERN.pattern.replace(" ", r"\W+"), re.IGNORECASE)
"""Matches the code of a file with banned words, whatever is between the words: line breaks, quotes, number signs."""
_SUSPECT = re.compile(rf'{_ANYWHERE.pattern}|"""(?:{OPENINGS.pattern}|Whether )', re.IGNORECASE)
"""Matches the code of a file that may have a banned word or a docstring that begins with a fragment."""
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def banned_words(text: str) -> list[str]:
    """Return the banned words of a text; code in backticks is skipped."""
    return [match.group() for match in _PATTERN.finditer(" ".join(_CODE.sub(" ", text).split()))]


Definition = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def docstrings(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring of a module, class or function."""
    for node in nodes:
        if isinstance(node, Definition):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, text


def attribute_docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of each string that documents the assignment above it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def interface_texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of each literal that is marked for translation."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            for argument in (node.args[place] for place in CALLS.get(name, ()) if place < len(node.args)):
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.lineno, argument.value


def comments(code: str) -> Iterator[tuple[int, str]]:
    """Yield first line and text of each block of comments; a sentence may run over several lines."""
    found: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            line, text = token.start[0], token.string.lstrip("#: ")
            if found and found[-1][0] + found[-1][1].count("\n") + 1 == line:
                found[-1] = (found[-1][0], f"{found[-1][1]}\n{text}")
            else:
                found.append((line, text))
    yield from found


@cache
def python_files() -> dict[Path, tuple[str, ast.Module]]:
    """Return code and syntax tree of the Python files whose prose is checked; of the tests only those with a match."""
    folders = (*PYTHON_FOLDERS, "decodescope", "tests")
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    code = {path: path.read_text(encoding="utf-8") for path in paths}
    tests = {path for path in paths if path.is_relative_to(ROOT / "tests")}
    code = {path: text for path, text in code.items() if path not in tests or _SUSPECT.search(text)}
    gc.disable()  # all trees are kept, so that a collection would only walk through them
    try:
        return {path: (text, ast.parse(text)) for path, text in code.items()}
    finally:
        gc.enable()


@cache
def definitions() -> dict[Path, list[Definition]]:
    """Return the modules, classes and functions of each file whose prose is checked."""
    trees = ((path, tree) for path, (_, tree) in python_files().items())
    return {path: [node for node in ast.walk(tree) if isinstance(node, Definition)] for path, tree in trees}


def text_files(*patterns: str) -> list[Path]:
    """Return the files that match, without the Chinese guide and installed packages."""
    found = {path for pattern in patterns for path in ROOT.glob(pattern)}
    return sorted(path for path in found if "zh_CN" not in path.parts)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def _where(path: Path, line: int) -> str:
    return f"{path.relative_to(ROOT).as_posix()}:{line}"


def test_python_files_have_no_banned_words() -> None:
    found = []
    for path, (code, tree) in python_files().items():
        if _ANYWHERE.search(code) is None:
            continue
        prose = {*docstrings(ast.walk(tree)), *attribute_docstrings(tree), *interface_texts(tree), *comments(code)}
        found += [f"{_where(path, line)}: {word}" for line, text in sorted(prose) for word in banned_words(text)]
    assert found == []


def test_documents_have_no_banned_words() -> None:
    files = text_files(*DOCUMENTS)
    assert len(files) > 30
    found = [(path.relative_to(ROOT).as_posix(), banned_words(path.read_text(encoding="utf-8"))) for path in files]
    assert [f"{name}: {words}" for name, words in found if words] == []


def test_tours_and_terms_have_no_banned_words() -> None:
    files = text_files(*TOURS_AND_TERMS)
    assert len(files) > 15
    found = [
        f"{path.relative_to(ROOT).as_posix()}: {words}"
        for path in files
        for text in _strings(tomllib.loads(path.read_text(encoding="utf-8")))
        if (words := banned_words(text))
    ]
    assert found == []


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    found = [
        f"{_where(path, line)}: {text.splitlines()[0]}"
        for path, nodes in definitions().items()
        for line, text in docstrings(nodes)
        if "packaging" not in path.relative_to(ROOT).parts and OPENINGS.match(text)
    ]
    assert found == []


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    """“Whether …” documents a property; a function returns it."""
    found = [
        f"{_where(path, node.lineno)}: {text.splitlines()[0]}"
        for path, nodes in definitions().items()
        for node in nodes
        if isinstance(node, ast.FunctionDef) and (text := ast.get_docstring(node) or "").startswith("Whether ")
        if not any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It is drawn\nanew.", ["anew"]),
        ("Whoever asks gets what was reckoned.", ["Whoever", "reckoned"]),
        ("`anew` is an argument.", []),
        ("The value of nowhere", []),
    ],
)
def test_banned_words_are_found(text: str, words: list[str]) -> None:
    assert banned_words(text) == words


@pytest.mark.parametrize("code", ["# nothing is\n    # done twice", 'tr("so "\n   "many")', '"""It is drawn\nanew."""'])
def test_file_with_banned_words_is_not_passed_over(code: str) -> None:
    assert _ANYWHERE.search(code)


def test_prose_is_extracted_from_all_places() -> None:
    code = (
        '"""Anew."""\nX = tr("so many")\n"""Reckoned."""\n# nothing is\n# done twice\n'
        'def f():\n    trn("nobody", "anew", 2)\n'
    )
    tree = ast.parse(code)
    prose = {*docstrings(ast.walk(tree)), *attribute_docstrings(tree), *interface_texts(tree), *comments(code)}
    assert sorted(word for _, text in prose for word in banned_words(text)) == [
        "Anew", "Reckoned", "anew", "nobody", "nothing is done twice", "so many",
    ]  # fmt: skip


PARTICIPLE = re.compile(
    r"[A-Z][a-z]+(?:ed|own|oken|iven|aken|osen|itten|ought|told)"
    r"|Begun|Done|Found|Kept|Made|Read|Said|Seen|Shot|Told|Ground|Held|Sent|Left"
)
"""Names of one word that are a past participle and not a noun phrase."""
TRACE_EVENTS = "core/events/"
"""Modules whose class names are written into recordings."""


CLASS_LINE = re.compile(r"^ *class _*(\w+)\b", re.MULTILINE)
"""The first line of a class, also of one within a function or a class; leading underscores are left out."""


def classes(*folders: str) -> Iterator[tuple[str, str]]:
    """Yield name, without leading underscores, and file of each class below the folders."""
    for path in (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))):
        names = CLASS_LINE.findall(path.read_text(encoding="utf-8"))
        yield from ((name, path.relative_to(ROOT).as_posix()) for name in names)


def defines_class(file: str, name: str) -> bool:
    """Return whether the file's own code has the class, and not a text in it, such as a plug-in's code."""
    nodes = ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
    return any(isinstance(node, ast.ClassDef) and node.name.lstrip("_") == name for node in nodes)


def test_class_name_is_defined_in_one_module_only() -> None:
    files: dict[str, set[str]] = defaultdict(set)
    for name, file in classes(*PYTHON_FOLDERS, "decodescope", "tests"):
        files[name].add(file)
    assert len(files) > 1000
    several = {name: sorted(found) for name, found in files.items() if len(found) > 1}
    defined = {name: [file for file in found if defines_class(file, name)] for name, found in several.items()}
    assert {name: found for name, found in defined.items() if len(found) > 1} == {}


def test_class_names_are_noun_phrases() -> None:
    found = [(n, file) for n, file in classes("core", "app") if PARTICIPLE.fullmatch(n) and n != "Themed"]  # a mixin
    assert [(name, file) for name, file in found if not file.startswith(TRACE_EVENTS)] == []
