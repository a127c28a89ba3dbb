"""The user guide: a page and a picture for everything, valid links, and correct numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtGui import QColor, QFont, QImage, QPainter
from PySide6.QtWidgets import QApplication

from decodescope import core
from decodescope.app.panels.commands import SHORTCUTS, key_of
from decodescope.app.state.run import Run
from decodescope.app.storage import examples
from decodescope.app.storage.settings import HistorySection
from decodescope.app.views import VIEWS, ViewSpec
from decodescope.core import caches, strategies
from decodescope.core.events import DraftRound
from tests.guide import pages
from tests.guide.__main__ import difference
from tests.guide.runs import GuideRuns

Entry = strategies.Strategy | caches.CacheBackend
ENTRIES: dict[str, Entry] = {
    **{f"strategies/{name}.md": entry for name, entry in strategies.registry.items()},
    **{f"caches/{name}.md": entry for name, entry in caches.registry.items()},
}
SUBJECTS: dict[str, Entry | ViewSpec] = {**ENTRIES, **{f"views/{view.name}.md": view for view in VIEWS}}
SECTIONS = ["What you see", "Try it", "When to use it", "Exactly"]


def text_of(name: str) -> str:
    return (pages.GUIDE / name).read_text(encoding="utf-8")


def words_of(name: str) -> str:
    """A page without its line breaks."""
    return " ".join(text_of(name).split())


def bold_words(name: str) -> list[str]:
    """The bold words of a page, outside its code."""
    text = re.sub(r"^```.*?^```", "", text_of(name), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"\*\*([^*]+)\*\*", " ".join(text.split()))


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_subject_has_page_and_picture(name: str) -> None:
    page, entry = pages.GUIDE / name, SUBJECTS[name]
    if name in ENTRIES and not page.is_file():
        assert ENTRIES[name].description is not None, (
            f"docs/guide/{name} is generated: give the entry a description=EntryDescription(…), or write the page."
        )
        return
    assert page.is_file(), f"Write docs/guide/{name}, with a picture in docs/guide/pictures.toml."
    text = text_of(name)
    assert text.startswith(f"# {entry.title}\n\n*"), "its name, then a sentence"
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == SECTIONS
    (picture,) = pages.shown(page)
    assert picture.stem == page.stem
    assert picture.exists()
    assert pages.pictures()[page.stem].out.resolve() == picture, "the script makes it"
    assert page in set(pages.links(pages.GUIDE / "README.md")), "the index leads to it"


def test_every_picture_is_shown_and_made() -> None:
    shown = {path for page in pages.PAGES for path in pages.shown(page)}
    made = {picture.out.resolve() for picture in pages.pictures().values()}
    there = set((pages.GUIDE / "pictures").iterdir())
    assert shown == made == there
    assert sum(path.stat().st_size for path in there) < 6_000_000


@pytest.mark.parametrize("page", pages.PAGES, ids=pages.name_of)
def test_links_exist_and_pictures_have_descriptions(page: Path) -> None:
    assert [path for path in pages.links(page) if not path.exists()] == []
    assert [path for path, words in pages.shown(page).items() if len(words) < 30] == []


@pytest.mark.parametrize("name", [name for name in ENTRIES if (pages.GUIDE / name).is_file()])
def test_page_lists_own_settings_and_paper(name: str) -> None:
    entry, text = ENTRIES[name], words_of(name)
    known = {parameter.name for parameter in entry.parameters}
    reported = set(re.findall(r"\| `(\w+)` \|", text))
    assert reported <= known, "no setting that it has not"
    assert all(part.strip() in text for part in entry.paper.split(";"))


def test_pages_use_titles_of_examples() -> None:
    known = {example.title for example in examples.load_examples()}
    named = {title for page in pages.PAGES for title in bold_words(pages.name_of(page))}
    assert {title for title in named - {"bold"} if not title.startswith("Ctrl+")} <= known
    assert len(named) > 15


def test_pages_name_existing_shortcuts() -> None:
    known = {key for shortcut in SHORTCUTS for key in shortcut.keys}
    named = {key for page in pages.PAGES for key in re.findall(r"Ctrl\+[\w+]+", text_of(pages.name_of(page)))}
    assert named <= known
    assert len(named) > 8


@pytest.fixture(scope="module")
def runs() -> GuideRuns:
    return GuideRuns()


def _share(piece: str) -> Callable[[Run], str]:
    """Format the model's probability of a token at its first position, as the page does."""

    def format_probability(run: Run) -> str:
        token = next(token for token in run.tokens if piece in {a.text for a in token.alternatives})
        return core.words.percent(next(a.raw_probability for a in token.alternatives if a.text == piece))

    return format_probability


def _repeated(run: Run) -> str:
    ids = [token.id for token in run.tokens]
    grams = [tuple(ids[n : n + 4]) for n in range(len(ids) - 3)]
    return f"{1 - len(set(grams)) / len(grams):.0%}".replace("%", " %")


def _bytes_a_token(run: Run) -> str:
    one, other = [point for point in run.cache_history.points if point.measured][-2:]
    return f"{(other.bytes - one.bytes) // (other.tokens - one.tokens):,}"


def _candidates(run: Run) -> int:
    return sum(alternative.degeneration_penalty is not None for alternative in run.tokens[0].alternatives)


def _first_round(run: Run) -> DraftRound:
    return next(event for event in run.events if isinstance(event, DraftRound))


FIGURES: list[tuple[str, str, str, Callable[[Run], object], dict[str, object]]] = [
    ("strategies/greedy.md", "greedy", "{} for it", _share(" pink"), {}),
    ("strategies/greedy.md", "greedy", "{} for “blue”", _share(" blue"), {}),
    ("strategies/greedy.md", "greedy", "{} times in 100 tokens", lambda r: r.text.count("I saw a pink bird in"), {}),
    ("strategies/greedy.md", "greedy", "in {} tokens", lambda r: len(r.tokens), {}),
    ("strategies/sampling.md", "sampling", "scores {:,}", lambda r: r.started.vocabulary, {"tokens": 1}),
    ("strategies/contrastive.md", "contrastive", "the {} candidates", _candidates, {"tokens": 1}),
    ("strategies/contrastive.md", "contrastive", "token is “{}”", lambda r: r.tokens[0].text.strip(), {"tokens": 1}),
    ("strategies/assisted.md", "assisted", "writes {} tokens quickly", lambda r: _first_round(r).length, {"tokens": 8}),
    ("caches/dynamic.md", "dynamic", "here {} bytes", _bytes_a_token, {"tokens": 24}),
    ("caches/model_specific.md", "model_specific", "of {:,} bytes", lambda r: r.cache.bytes, {"tokens": 4}),
    ("views/compare.md", "compare", "{} with greedy decoding", _repeated, {}),
    ("views/compare.md", "compare", "{} with contrastive search", _repeated, {"strategy": "contrastive"}),
]  # fmt: skip


@pytest.mark.slow
def test_figures_in_pages_match_runs(runs: GuideRuns) -> None:
    wrong = []
    for name, picture, words, figure, how in FIGURES:
        reported = words.format(figure(runs.of(pages.pictures()[picture], **how)))
        if reported not in words_of(name):
            wrong.append(f"{name} does not say “{reported}”")
    assert wrong == []


def test_settings_in_pages_match_picture_scripts() -> None:
    made = pages.pictures()
    assert made["sink"].cache_parameters == {"window_length": 64}
    assert made["quantized"].cache_parameters == {"nbits": 4, "residual_length": 32}
    window = core.catalog.read_config(core.catalog.locate("storyteller-window"))["sliding_window"]
    assert f"at most {window} tokens" in text_of("caches/sliding_window.md")
    layers = core.catalog.read_config(core.catalog.locate("storyteller"))["num_hidden_layers"]
    early = next(example for example in examples.load_examples() if example.id == made["early_exit"].example)
    drafts = early.params["assistant_early_exit"]
    assert f"the first {drafts} of the model's {layers} layers" in text_of("strategies/early_exit.md")


def _drawn(words: str, shift: float = 0.0) -> QImage:
    picture = QImage(1100, 700, QImage.Format.Format_RGB32)
    picture.fill(QColor("white"))
    painter = QPainter(picture)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.translate(shift, shift)
    font = QFont()
    font.setPixelSize(14)
    painter.setFont(font)
    for line in range(12):
        painter.drawText(20, 40 + 50 * line, f"A line of a page, the {line}th. {words if line == 9 else ''}")
    painter.end()
    return picture


def test_picture_difference_tolerates_nothing(qapp: QApplication, tmp_path: Path) -> None:
    one, other = tmp_path / "one.png", tmp_path / "other.png"
    picture = _drawn("and then a fox came by")
    picture.save(str(one))
    picture.save(str(other))
    assert difference(one, other) == ""
    picture.setPixelColor(10, 20, QColor(1, 2, 3))
    picture.save(str(other))
    assert difference(one, other) == "1 rows of pixels differ, from 20 to 20"
    picture.scaled(1099, 700).save(str(other))
    assert difference(one, other) == "the sizes differ"
    assert difference(one, tmp_path / "missing.png") == "the sizes differ"


def test_history_page_has_current_keys_and_numbers() -> None:
    text = words_of("history.md")
    for action in ("toggle_history", "previous_run", "next_run"):
        assert f"`{key_of(action)}`" in text
    assert f"({HistorySection().budget_mib} MiB at first)" in text
    assert pages.GUIDE / "history.md" in set(pages.links(pages.GUIDE / "README.md"))
