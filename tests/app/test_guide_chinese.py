"""The Chinese guide: its pages belong to English ones, and both lead to each other."""

from __future__ import annotations

import pytest

from tests.guide import pages

NAMES = [name for name in map(pages.name_of, pages.PAGES) if (pages.CHINESE / name).is_file()]


def test_no_page_is_left_over() -> None:
    """A page that is missing, or older than the English one, is listed by `packaging/translations.py check`."""
    own = [page.relative_to(pages.CHINESE).as_posix() for page in pages.CHINESE_PAGES]
    assert [name for name in own if not (pages.GUIDE / name).is_file()] == []


@pytest.mark.parametrize("name", NAMES)
def test_page_translations_link_to_each_other_and_links_exist(name: str) -> None:
    english, chinese = pages.GUIDE / name, pages.CHINESE / name
    assert chinese in set(pages.links(english))
    assert english in set(pages.links(chinese))
    assert [path for path in pages.links(chinese) if not path.exists()] == []
    assert [path for path, words in pages.shown(chinese).items() if len(words) < 8] == [], "captions"
    translated = {pages.GUIDE / name for name in NAMES} - {english}
    strays = [path for path in pages.links(chinese) if path in translated]
    assert strays == [], "who reads Chinese is led to Chinese"


def test_chinese_pictures_are_few_and_all_used() -> None:
    there = set((pages.CHINESE / "pictures").iterdir())
    made = {picture.out.resolve() for picture in pages.pictures(pages.CHINESE).values()}
    shown = {path for page in pages.CHINESE_PAGES for path in pages.shown(page)}
    assert made == there == {path for path in shown if path.is_relative_to(pages.CHINESE)}
    assert len(there) <= 6
    assert sum(path.stat().st_size for path in there) < 800_000
