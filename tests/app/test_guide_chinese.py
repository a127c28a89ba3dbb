"""The Chinese guide: a page for each English one, in the program's own Chinese terms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.storage import examples
from resources.language import ENGLISH, set_language, tr
from tests.guide import pages

NAMES = [pages.name_of(page) for page in pages.PAGES]
SECTIONS = {
    "What you see": "你会看到", "Try it": "试一试", "When to use it": "何时使用", "Exactly": "精确地说",
}  # fmt: skip

BUTTONS = {"Tours"}
"""Set as code are settings, files and keys, which are the same in Chinese, and these."""


@pytest.fixture(autouse=True)
def _chinese() -> Iterator[None]:
    set_language("zh_CN")
    yield
    set_language(ENGLISH)


def _words(page: Path) -> str:
    return " ".join(page.read_text(encoding="utf-8").split())


def _headings(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^(#+) (.*)$", text, re.MULTILINE)


def _figures(text: str) -> set[str]:
    """Every number that stands for itself, no part of a name or a file."""
    prose = re.sub(r"`[^`]*`|\]\([^)]*\)|[A-Za-z][\w-]*\d\w*", "", text)
    return set(re.findall(r"\d+(?:[.,]\d+)*", prose))


def _code(text: str) -> list[str]:
    fenced = re.compile(r"```.*?```", re.DOTALL)
    return [*fenced.findall(text), *re.findall(r"`([^`]+)`", fenced.sub("", text))]


def test_every_page_has_one_and_none_is_left_over() -> None:
    assert [page.relative_to(pages.CHINESE).as_posix() for page in pages.CHINESE_PAGES] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_it_is_built_as_the_english_page_and_says_the_same_figures(name: str) -> None:
    english, chinese = pages.GUIDE / name, pages.CHINESE / name
    one, other = (page.read_text(encoding="utf-8") for page in (english, chinese))
    assert [level for level, _ in _headings(other)] == [level for level, _ in _headings(one)]
    for (_, reported), (_, meant) in zip(_headings(other), _headings(one), strict=True):
        assert reported == SECTIONS.get(meant, tr(meant)) or tr(meant) == meant, "the program's own word"
    assert _figures(other) == _figures(one)
    assert sorted(_code(other)) == sorted(tr(reported) if reported in BUTTONS else reported for reported in _code(one))
    assert {path.stem for path in pages.shown(chinese)} == {path.stem for path in pages.shown(english)}


@pytest.mark.parametrize("name", NAMES)
def test_the_two_lead_to_each_other_and_the_rest_of_the_links_to_files(name: str) -> None:
    english, chinese = pages.GUIDE / name, pages.CHINESE / name
    assert chinese in set(pages.links(english))
    assert english in set(pages.links(chinese))
    assert [path for path in pages.links(chinese) if not path.exists()] == []
    assert [path for path, words in pages.shown(chinese).items() if len(words) < 8] == [], "captions"
    strays = [path for path in pages.links(chinese) if path.suffix == ".md" and path in pages.PAGES and path != english]
    assert strays == [], "who reads Chinese is led to Chinese"


@pytest.mark.parametrize("name", NAMES)
def test_what_it_names_is_called_as_the_program_calls_it(name: str) -> None:
    one, other = _words(pages.GUIDE / name), _words(pages.CHINESE / name)
    titles = {example.title: tr(example.title) for example in examples.load_examples()}
    bold, fat = (set(re.findall(r"\*\*([^*]+)\*\*", text)) for text in (one, other))
    assert fat & set(titles.values()) == {titles[title] for title in bold & set(titles)}
    controls = set(re.findall(r"(?<!\*)\*([^*]+)\*(?!\*)", one))
    assert [f"{name} = {tr(name)}" for name in controls if tr(name) not in other and tr(name) != name] == []


def test_its_own_pictures_are_few_and_all_are_shown() -> None:
    there = set((pages.CHINESE / "pictures").iterdir())
    made = {picture.out.resolve() for picture in pages.pictures(pages.CHINESE).values()}
    shown = {path for page in pages.CHINESE_PAGES for path in pages.shown(page)}
    assert made == there == {path for path in shown if path.is_relative_to(pages.CHINESE)}
    assert len(there) <= 6
    assert sum(path.stat().st_size for path in there) < 750_000
