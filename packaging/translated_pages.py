"""Compare the translated pages of the documentation with the English ones: which are missing, which are out of date.

A page `docs/guide/views/tree.md` has its Chinese counterpart in `docs/guide/zh_CN/views/tree.md`. A missing one is
replaced by the English page in the window and on the site; only a release requires all of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TRANSLATED = {"guide": True, "tutorials": False}
"""Folders of `docs` whose pages are translated; whether their headings and emphasized words are the program's."""
SECTIONS = {
    "What you see": "你会看到", "Try it": "试一试", "When to use it": "何时使用", "Exactly": "精确地说",
}  # fmt: skip
"""Headings that every page of an entry has."""
BUTTONS = frozenset({"Tours"})
"""Words set as code that are translated, because they are labels of buttons."""
_BLOCK = re.compile(r"```.*?```", re.DOTALL)


def page_pairs(top: Path, code: str) -> Iterator[tuple[Path, Path]]:
    """Yield each English page of a folder with the path of its counterpart in a language, which may not exist."""
    own = top / code
    for page in sorted(top.rglob("*.md")):
        if not page.is_relative_to(own):
            yield page, own / page.relative_to(top)


def outdated_pages(code: str, translate: Callable[[str], str], docs: Path = ROOT / "docs") -> Iterator[str]:
    """Yield a line for each page that is missing in a language, or that differs from the English one.

    `translate` returns a text of the program in that language.
    """
    for folder, has_program_words in TRANSLATED.items():
        for english, own in page_pairs(docs / folder, code):
            name = own.relative_to(docs.parent).as_posix()
            if not own.is_file():
                yield f"{name}: missing; the English page is shown instead"
                continue
            texts = (page.read_text(encoding="utf-8") for page in (english, own))
            differences = page_differences(*texts, translate, has_program_words)
            yield from (f"{name}: {difference}" for difference in differences)


def prose_of_pages(code: str, docs: Path = ROOT / "docs") -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each page in a language, without blocks of code."""
    for folder in TRANSLATED:
        for page in sorted((docs / folder / code).rglob("*.md")):
            yield page.relative_to(docs.parent).as_posix(), _BLOCK.sub("", page.read_text(encoding="utf-8"))


def page_differences(
    english: str, own: str, translate: Callable[[str], str], has_program_words: bool = True
) -> Iterator[str]:
    """Yield how a translated page differs from the English one in what both must share: headings, numbers, code,
    pictures, names of examples, and with `has_program_words` the program's words for headings and controls.
    """
    headings, own_headings = (re.findall(r"^(#+) (.*)$", _BLOCK.sub("", text), re.MULTILINE) for text in (english, own))
    if [level for level, _ in headings] != [level for level, _ in own_headings]:
        yield "other headings"
    elif has_program_words:
        for (_, title), (_, own_title) in zip(headings, own_headings, strict=True):
            expected = SECTIONS.get(title, translate(title))
            if expected not in (own_title, title):
                yield f"the heading “{own_title}” is “{expected}” in the program"
    for what, differs in (
        ("numbers", _numbers(english) != _numbers(own)),
        ("code", sorted(_code(own)) != sorted(translate(text) if text in BUTTONS else text for text in _code(english))),
        ("pictures", _pictures(english) != _pictures(own)),
    ):
        if differs:
            yield f"other {what}"
    one, other = _words(english), _words(own)
    titles = {title: translate(title) for title in _example_titles()}
    bold, own_bold = (set(re.findall(r"\*\*([^*]+)\*\*", text)) for text in (one, other))
    if own_bold & set(titles.values()) != {titles[title] for title in bold & set(titles)}:
        yield "other examples"
    names = set(re.findall(r"(?<!\*)\*([^*]+)\*(?!\*)", one)) if has_program_words else ()
    for name in sorted(names):
        if translate(name) not in other and translate(name) != name:
            yield f"“{name}” is “{translate(name)}” in the program"


def _numbers(text: str) -> set[str]:
    """Return the numbers in the prose that are not part of a name or a file."""
    prose = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)|[A-Za-z][\w-]*\d\w*", "", text, flags=re.DOTALL)
    return set(re.findall(r"\d+(?:[.,]\d+)*", prose))


def _code(text: str) -> list[str]:
    return [*_BLOCK.findall(text), *re.findall(r"`([^`]+)`", _BLOCK.sub("", text))]


def _pictures(text: str) -> set[str]:
    return {Path(path).stem for path in re.findall(r"!\[[^\]]*\]\(([^)\s]+)\)", text)}


def _words(text: str) -> str:
    return " ".join(text.split())


def _example_titles() -> list[str]:
    return [example["title"] for example in json.loads((ROOT / "resources" / "examples.json").read_text("utf-8"))]
