"""Damaged files of every kind that other people write are read, or refused with a message, and never raise raw.

The corpus is `tests/fuzz/corpus`; `tests/fuzz/parsers.py` lists the parsers. The short form uses the same damage in
each run. The long form (`-m fuzz`) uses new damage in each and prints its seed; DECODESCOPE_FUZZ_SEED repeats it.
"""

from __future__ import annotations

import ast
import os
import random
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from decodescope.core.errors import DecodescopeError
from tests.fuzz.mutation import mutate
from tests.fuzz.outcomes import LONG, CaseTally
from tests.fuzz.parsers import CORPUS, OTHER_TESTS, OWN_DATA, PARSERS, Parser, RefusedError

ROOT = Path(__file__).resolve().parents[2]
VALID = "valid-"
"""How the names of files begin that must be read."""
LONG_SHARE = 0.05
"""Share of the long form's cases for each parser."""
DECODERS = {
    "json.load", "json.loads", "tomllib.load", "tomllib.loads", "yaml.safe_load",
    "msgspec.json.decode", "msgspec.msgpack.decode", "msgspec.json.Decoder", "msgspec.msgpack.Decoder",
    "json.JSONDecoder", "unpack", "unpack_from", "int.from_bytes", "sqlite3.connect", "safe_open",
    "torch.load", "pickle.load", "pickle.loads", "Image.open", "soundfile.SoundFile", "urlsplit", "urlparse",
    "csv.reader", "csv.DictReader", "base64.b64decode", "setMarkdown", "setHtml", "ElementTree.parse", "fromstring",
    "literal_eval", "LLMatcher", "from_string", "read_string", "urls",
}  # fmt: skip
"""Functions that decode bytes or text, by the end of the dotted name that is called."""


@pytest.fixture
def folder(tmp_path: Path, qapp: QApplication) -> Path:
    return tmp_path


def read(parser: Parser, name: str, data: bytes, folder: Path) -> str:
    """Read a file in an otherwise empty folder; return why it was refused, or an empty text."""
    place = folder / "case"
    _empty(place)
    file = place / name
    file.write_bytes(data)
    try:
        parser.read(file, place)
    except RefusedError as error:
        return str(error)
    except (DecodescopeError, *parser.errors) as error:
        reason = " ".join(_words(error))
    else:
        return ""
    assert reason.strip(), "an error without a message"
    return reason


def _words(error: Exception) -> tuple[str, ...]:
    """Return the text of an error: cause and remedy, both of which are required, or the message."""
    if not isinstance(error, DecodescopeError):
        return (str(error),)
    return (error.cause, error.remedy) if error.cause and error.remedy else ()


def _empty(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for base, folders, files in os.walk(folder, topdown=False):
        for name in files:
            os.unlink(os.path.join(base, name))
        for name in folders:
            os.rmdir(os.path.join(base, name))


def fuzz(parser: Parser, count: int, dice: random.Random, folder: Path) -> None:
    files = [(path.name, path.read_bytes()) for path in parser.files]
    contents, tally = [data for _, data in files], CaseTally()
    for number in range(count):
        name, data = files[number % len(files)]
        damaged = mutate(data, contents, parser.tokens, dice)
        tally.attempt((parser.name, name, damaged), partial(read, parser, name, damaged, folder))
    tally.check()


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_the_corpus_is_read_or_refused(parser: Parser, folder: Path) -> None:
    tally = CaseTally()
    for path in parser.files:

        def check(path: Path = path) -> None:
            refusal = read(parser, path.name, path.read_bytes(), folder)
            assert not (path.name.startswith(VALID) and refusal), refusal

        tally.attempt((parser.name, path.name), check)
    tally.check()
    assert any(path.name.startswith(VALID) for path in parser.files)


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_damaged_files_are_read_or_refused(parser: Parser, folder: Path) -> None:
    fuzz(parser, parser.cases, random.Random(parser.name), folder)


@pytest.mark.fuzz
@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.name)
def test_many_damaged_files_are_read_or_refused(parser: Parser, folder: Path) -> None:
    seed = int(os.environ.get("DECODESCOPE_FUZZ_SEED", random.randrange(2**31)))
    print(f"\nDECODESCOPE_FUZZ_SEED={seed}")
    fuzz(parser, int(LONG * LONG_SHARE), random.Random(seed), folder)


def test_every_folder_of_the_corpus_belongs_to_a_parser() -> None:
    assert {path.name for path in CORPUS.iterdir() if path.is_dir()} == {
        parser.corpus or parser.name for parser in PARSERS
    }


def test_every_module_that_decodes_has_a_fuzz_test() -> None:
    """A new module that parses something is named here until it is added to a parser, or to the reasons."""
    listed = {module for parser in PARSERS for module in parser.modules}
    listed |= {module for modules in OTHER_TESTS.values() for module in modules} | OWN_DATA.keys()
    found = {module: names for module, names in _decoding_modules()}
    assert {module: names for module, names in found.items() if module not in listed} == {}
    assert sorted(OWN_DATA.keys() - found.keys()) == [], "a reason for a module that decodes nothing"
    for path in OTHER_TESTS:
        assert (ROOT / path).is_file(), path
    for module in listed:
        assert (ROOT / f"{module.replace('.', '/')}.py").is_file(), module


def _decoding_modules() -> Iterator[tuple[str, list[str]]]:
    """Yield the program's modules that call a decoder, and the calls."""
    last = re.compile("|".join(rf"\b{re.escape(name.rpartition('.')[2])}\(" for name in DECODERS))
    for path in sorted((*(ROOT / "core").rglob("*.py"), *(ROOT / "app").rglob("*.py"))):
        code = path.read_text(encoding="utf-8")
        if not last.search(code):
            continue
        calls = (node.func for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call))
        names = {name for name in map(_dotted_name, calls) if any(_ends_with(name, known) for known in DECODERS)}
        if names:
            yield ".".join(path.relative_to(ROOT).with_suffix("").parts), sorted(names)


def _dotted_name(function: ast.expr) -> str:
    """Return the name of a called function with what it is an attribute of, as far as that has a name."""
    if isinstance(function, ast.Attribute):
        return f"{_dotted_name(function.value)}.{function.attr}"
    return function.id if isinstance(function, ast.Name) else "_"


def _ends_with(name: str, known: str) -> bool:
    return name == known or name.endswith(f".{known}")
