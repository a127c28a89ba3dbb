"""Extract the texts to translate, update the catalogues, check and compile them.

Run from the repository's root:

    python packaging/translations.py update [PART …]   new sentences into the .po files, those that are gone out of them
    python packaging/translations.py compile           a .mo beside every .po that is newer or has none
    python packaging/translations.py check             faults of the catalogues, then what is not translated
    python packaging/translations.py check --complete  the same; texts that are not translated count as faults

A text without a translation is shown in English, and so is a page of the guide. Only a release requires all of them.
A catalogue is a part of the program, so that people can work on several of them side by side.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import string
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

sys.path.insert(0, str(ROOT / "packaging"))

from chinese_wording import lost_names, wording_faults  # noqa: E402  # the root has to be on the path first
from translated_pages import outdated_pages, prose_of_pages  # noqa: E402

from decodescope.core.trace.page.html_page import script_messages, skeleton_messages  # noqa: E402
from decodescope.resources.catalogs import FOLDER, compile_catalogs  # noqa: E402
from decodescope.resources.language import ENGLISH, LANGUAGES, translate_to  # noqa: E402

OTHERS = tuple(code for code in LANGUAGES if code != ENGLISH)
PARTS = {
    "core": ("core",),
    "explain": ("core/explain", "core/glossary.py", "resources/glossary"),
    "window": ("app",),
    "views": ("app/views", "app/widgets", "app/features/labs/view"),
    "tours": ("resources/tours", "resources/lessons", "resources/examples.json"),
}
"""Where the sentences of each catalogue stand; the longest path that fits decides."""
CHANGING = re.compile(
    rb'^"(POT-Creation-Date|PO-Revision-Date|Last-Translator|Generated-By|Project-Id-Version|Report-Msgid-Bugs-To'
    rb"|Language-Team):.*\n",
    re.MULTILINE,
)
MESSAGE_PLACES = {"tr": (0,), "mark": (0,), "trn": (0, 1), "trc": (1,)}
"""The functions that take sentences, and which of their arguments are one; two are singular and plural."""
CONTEXT_PLACES = {"trc": 0}
"""Where a function takes the context of its sentence."""
COMMENT = "Translators:"
"""How a comment begins that is meant for translators."""
READ: dict[str, frozenset[str]] = {
    "resources/examples.json": frozenset({"title", "about"}),
    "resources/tours": frozenset({"title", "about", "text", "otherwise", "notes", "question"}),
    "resources/lessons": frozenset({"title", "about", "text", "otherwise", "notes", "question", "answer"}),
    "resources/glossary": frozenset({"term", "plain", "usual", "exact"}),
}
"""In the data files of these folders (.toml, .json) the values of these keys are read by people."""


WORDING: dict[str, Callable[[str], Iterator[str]]] = {"zh_CN": wording_faults}
"""Checks of punctuation and terms that belong to one language."""

Found = tuple[str | tuple[str, ...], str | None, list[str]]
"""Message, context, comments."""


def part_of(path: str) -> str:
    """The catalogue of a file, by its path from the root."""
    fitting = [(len(folder), part) for part, folders in PARTS.items() for folder in folders if _is_in(path, folder)]
    return max(fitting)[1]


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def files() -> Iterator[tuple[str, Path]]:
    """Every file that may hold sentences, with its path from the root."""
    for folder in sorted({folder for folders in PARTS.values() for folder in folders}):
        below = ROOT / folder
        found = [below] if below.is_file() else [path for path in below.rglob("*") if path.suffix in READERS]
        yield from ((path.relative_to(ROOT).as_posix(), path) for path in sorted(found))


def messages(path: Path) -> Iterator[Found]:
    """What one file says."""
    yield from READERS[path.suffix](path)


def _of_python(path: Path) -> Iterator[Found]:
    """Read the calls from the syntax tree. Tokens would not do: Python 3.11 has none for the inside of an f-string."""
    text = path.read_text(encoding="utf-8")
    calls = [node for node in ast.walk(ast.parse(text, path.name)) if isinstance(node, ast.Call)]
    lines = text.splitlines()
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        sentences = [_constant(call, place) for place in MESSAGE_PLACES.get(name, ())]
        if not sentences or not all(sentences):
            continue
        context = _constant(call, CONTEXT_PLACES[name]) if name in CONTEXT_PLACES else None
        yield (sentences[0] if len(sentences) == 1 else tuple(sentences)), context, _comments_above(lines, call.lineno)


def _constant(call: ast.Call, place: int) -> str | None:
    """Return a positional argument that is a literal text."""
    argument = call.args[place] if place < len(call.args) else None
    return argument.value if isinstance(argument, ast.Constant) and isinstance(argument.value, str) else None


def _comments_above(lines: list[str], number: int) -> list[str]:
    """Return the comment for translators right above a line."""
    found: list[str] = []
    for line in reversed(lines[: number - 1]):
        if not line.strip().startswith("#"):
            return []
        found.insert(0, line.strip().lstrip("#").strip())
        if found[0].startswith(COMMENT):
            return [found[0].removeprefix(COMMENT).strip(), *found[1:]]
    return []


def _of_data(path: Path) -> Iterator[Found]:
    keys = next(
        (keys for folder, keys in READ.items() if _is_in(path.relative_to(ROOT).as_posix(), folder)), frozenset()
    )
    yield from ((text, None, []) for text in _sentences(_read(path), keys))


def _of_script(path: Path) -> Iterator[Found]:
    yield from ((message, None, []) for message in script_messages(path.read_text(encoding="utf-8")))


def _of_skeleton(path: Path) -> Iterator[Found]:
    yield from ((message, None, []) for message in skeleton_messages(path.read_text(encoding="utf-8")))


READERS: dict[str, Callable[[Path], Iterator[Found]]] = {
    ".py": _of_python, ".toml": _of_data, ".json": _of_data, ".js": _of_script, ".html": _of_skeleton,
}  # fmt: skip
"""By the kind of a file; the last two are parts of the page that a run is written as."""


def _read(path: Path) -> object:
    text = path.read_text(encoding="utf-8")
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


def _sentences(value: object, keys: frozenset[str], key: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _sentences(inner, keys, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _sentences(inner, keys, key)
    elif isinstance(value, str) and key in keys and value:
        yield value


def extracted() -> dict[str, Catalog]:
    """Return the texts in the program, by part."""
    found = {part: Catalog(fuzzy=False) for part in PARTS}
    seen = set()
    for name, path in files():
        if name in seen:
            continue
        seen.add(name)
        for message, context, comments in messages(path):
            found[part_of(name)].add(message, locations=[(name, None)], context=context, auto_comments=comments)
    return found


def po_path(code: str, part: str) -> Path:
    """Where the catalogue of a part is kept."""
    return FOLDER / code / f"{part}.po"


def kept(code: str, part: str) -> Catalog:
    """The catalogue as it is kept; an empty one where there is none yet."""
    path = po_path(code, part)
    if not path.exists():
        return Catalog(locale=code, fuzzy=False)
    with path.open("rb") as file:
        return read_po(file, locale=code)


def updated(code: str, part: str, now: Catalog) -> Catalog:
    """Return the texts in the program with their translations, also of texts that were in another part of it."""
    catalogs = [kept(code, name) for name in (part, *(name for name in PARTS if name != part))]
    after = Catalog(locale=code, fuzzy=False, header_comment=f"# {LANGUAGES[code]}: {part}")
    for message in now:
        if message.id:
            olds = (catalog.get(message.id, message.context) for catalog in catalogs)
            after.add(
                message.id,
                next((old.string for old in olds if old is not None and is_translated(old)), None),
                locations=message.locations,
                auto_comments=message.auto_comments,
                context=message.context,
            )
    return after


def is_translated(message: Message) -> bool:
    """Return whether a message of a catalogue has all its forms."""
    forms = message.string if isinstance(message.string, tuple | list) else (message.string,)
    return bool(forms) and all(forms)


def as_po(catalogue: Catalog) -> bytes:
    """Return a catalogue as text, without dates."""
    file = io.BytesIO()
    write_po(file, catalogue, width=120, sort_by_file=True, omit_header=False, include_lineno=False)
    return CHANGING.sub(b"", file.getvalue())


def placeholders(text: str) -> set[str]:
    """The names in braces; none where the braces are not meant as places."""
    try:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}
    except ValueError:
        return set()


def faults() -> Iterator[str]:
    """Yield the faults of the catalogues, a line each. A missing translation is not one: `untranslated` lists those."""
    now = extracted()
    for code in OTHERS:
        for part in PARTS:
            before = kept(code, part)
            for message in now[part]:
                if message.id:
                    yield from (f"{code}/{part}: {fault}" for fault in _faults(message, before))
            gone = [
                message.id for message in before if message.id and now[part].get(message.id, message.context) is None
            ]
            yield from (
                f"{code}/{part}: no longer in the program (run packaging/translations.py update): {message!r}"
                for message in gone
            )
        yield from conflicts(code)
        yield from wording(code)


def wording(code: str) -> Iterator[str]:
    """Yield the faults of punctuation and of terms in the texts and the pages of a language, and the names of code that
    a translation has lost.
    """
    check = WORDING.get(code, lambda text: iter(()))
    for part in PARTS:
        for message in kept(code, part):
            if not message.id or not is_translated(message):
                continue
            source = message.id[-1] if isinstance(message.id, tuple) else message.id
            for text in message.string if isinstance(message.string, tuple) else (message.string,):
                lost = [f"lost {name}" for name in lost_names(source, text)]
                yield from (f"{code}/{part}: {fault} ({source!r})" for fault in (*check(text), *lost))
    for name, text in prose_of_pages(code):
        yield from (f"{name}: {fault}" for fault in check(text))


def conflicts(code: str) -> Iterator[str]:
    """Yield the sentences that two parts translate differently: which one is shown would be chance."""
    seen: dict[tuple[object, str | None], tuple[str, object]] = {}
    for part in PARTS:
        for message in kept(code, part):
            if not message.id or not is_translated(message):
                continue
            other, string = seen.setdefault((message.id, message.context), (part, message.string))
            if string != message.string:
                yield f"{code}: {other} says {string!r}, {part} {message.string!r} (alike, or trc): {message.id!r}"


def _faults(message: Message, before: Catalog) -> Iterator[str]:
    """Yield what a translation has lost of its source: placeholders, line breaks, backslashes."""
    forms = message.id if isinstance(message.id, tuple) else (message.id,)
    old = before.get(message.id, message.context)
    if old is None or not is_translated(old):
        return
    given = old.string if isinstance(old.string, tuple) else (old.string,)
    for what, features in (
        ("placeholders", placeholders),
        ("line breaks", lambda text: text.count("\n")),
        ("backslashes", lambda text: text.count("\\")),
    ):
        if not all(features(text) == features(forms[-1]) for text in given):
            yield f"other {what} ({message.locations[0][0]}): {forms[0]!r}"


def untranslated() -> Iterator[str]:
    """Yield what is shown in English in each other language, a line each: texts, and pages of the documentation."""
    now = extracted()
    for code in OTHERS:
        for part in PARTS:
            before = kept(code, part)
            for message in now[part]:
                old = before.get(message.id, message.context) if message.id else None
                if message.id and (old is None or not is_translated(old)):
                    first = message.id[0] if isinstance(message.id, tuple) else message.id
                    yield f"{code}/{part}: not translated ({message.locations[0][0]}): {first!r}"
        yield from outdated_pages(code, lambda text, code=code: translate_to(text, code))


def unmarked() -> list[str]:
    """Return the texts of the code that are not marked for translation, so that no catalogue can contain them."""
    from tests.packaging.test_translation_marks import unmarked_texts  # needs pytest, and only this check does

    return unmarked_texts()


def update(parts: list[str]) -> None:
    """Update the .po files to the texts in the program."""
    now = extracted()
    for code in OTHERS:
        for part in parts or PARTS:
            path = po_path(code, part)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(as_po(updated(code, part, now[part])))


def main() -> int:
    """Run the requested command; return 1 if a check finds a problem."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["update", "compile", "check"])
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--complete", action="store_true", help="check: texts that are not translated are faults too")
    options = parser.parse_args()
    if options.what == "update":
        update(options.parts)
    compile_catalogs()
    if options.what != "check":
        return 0
    found, missing = [*faults(), *unmarked()], list(untranslated())
    print("\n".join([*found, *missing, f"{len(found)} faults, {len(missing)} not translated"]))
    return 1 if found or (options.complete and missing) else 0


if __name__ == "__main__":
    sys.exit(main())
