"""The page in a real browser: clicks, keys, both themes, a narrow screen, and no network access."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from transformers import GenerationConfig

from decodescope import core
from decodescope.core import words
from decodescope.core.events import BeamStep, DraftRound, Event, PromptToken, RunStarted, TokenChosen
from decodescope.core.trace.page.html_page import PageRun, runs_page
from decodescope.resources.language import ENGLISH, set_language
from tests.page.browser import Browser

PROMPT = "Once upon a time, there was a little"
EVIL = "</script><img src=x onerror=\"document.title='caught'\">"
ENDS = [0.0, 1e-9, 4e-6, 9.4e-5, 5e-4, 0.0049, 0.005, 0.0099, 0.0995, 0.9949, 0.9951, 0.99875, 0.9999, 0.99995, 1.0]
SHARES = [*ENDS, 0.0125, 0.125, 0.305, 0.315, 0.5, *(n / 997 for n in range(997))]
SIZES = [0, 1, 1023, 1024, 1500, 102_400, 1_048_576, 1_288_490, 5_368_709_120]


@cache
def model(name: str) -> core.LoadedModel:
    return core.load(name)


@cache
def events(kind: str) -> tuple[Event, ...]:
    settings: dict[str, dict[str, Any]] = {
        "sampling": {"do_sample": True, "temperature": 0.8, "top_p": 0.92, "num_return_sequences": 2},
        "beam_search": {"num_beams": 3, "num_return_sequences": 2, "repetition_penalty": 1.05},
        "speculative": {},
    }
    drafters = (model("storyteller-draft"),) if kind == "speculative" else ()
    config = GenerationConfig(max_new_tokens=24, **settings[kind])
    return tuple(core.stream(model("storyteller"), core.Request(PROMPT, config, kind, drafters=drafters, seed=42)))


def tokens(kind: str, sequence: int = 0) -> list[TokenChosen]:
    return [event for event in events(kind) if isinstance(event, TokenChosen) and event.sequence == sequence]


@pytest.fixture(scope="module")
def browser(needs_chromium: str) -> Iterator[Browser]:
    """One for all tests of this file."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        made = Browser(needs_chromium, Path(folder))
        yield made
        made.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


@pytest.fixture
def page(browser: Browser, folder: Path, request: pytest.FixtureRequest) -> Iterator[Browser]:
    """The browser with the page of a run; in no test the page requests a file or logs an error."""
    kind = request.param
    path = folder / f"{kind}.html"
    if not path.exists():
        core.page(events(kind), path)
    browser.open(path)
    yield browser
    assert browser.requests == [path.as_uri()]
    assert browser.errors == []


def of(kind: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("page", [kind], indirect=True)


@of("sampling")
def test_clicked_token_shows_its_explanation_and_probabilities(page: Browser) -> None:
    token = max(tokens("sampling"), key=lambda token: abs(token.probability - token.raw_probability))
    page.click("#tokens .token", token.step)
    assert page.text("#panel .why") == core.explain_token(token)
    assert page.texts("#panel .why b") == [core.explain_token(token)[a:b] for a, b in core.explain_token(token).figures]
    assert page.texts("#panel .about-it")[0].startswith(f"id {token.id:,} · rank {token.rank:,}")
    rows = page.evaluate(
        "[...document.querySelectorAll('#panel .bars tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))"
    )
    final = [words.brief_percent(item.probability) if item.probability else "cut" for item in token.alternatives]
    before = [words.brief_percent(item.raw_probability) for item in token.alternatives]
    names = [words.label(item.text) for item in token.alternatives]
    assert rows == [list(row) for row in zip(names, [""] * len(names), before, final, strict=True)]
    widths = page.evaluate(
        "[...document.querySelectorAll('#panel .bars tr .lane:last-child i')].map((i) => parseFloat(i.style.width))"
    )
    assert widths == pytest.approx([100 * item.probability for item in token.alternatives], abs=0.01)
    assert page.texts("#panel .funnel b") == [*(f"{stage.survivors:,}" for stage in token.funnel), "1"]


@of("sampling")
def test_keyboard_moves_and_clears_the_token_selection(page: Browser) -> None:
    page.evaluate("document.getElementById('tokens').focus()")
    page.press("Home", "ArrowRight", "ArrowRight")
    assert page.text("#panel h2").lower() == "token 3"
    chosen = "document.querySelector('.token.chosen')"
    assert page.evaluate(f"{chosen}.id === document.getElementById('tokens').getAttribute('aria-activedescendant')")
    assert page.evaluate(f"getComputedStyle({chosen}).outlineStyle") == "solid"
    page.press("ArrowLeft")
    assert page.text("#panel h2").lower() == "token 2"
    page.press("End")
    assert page.text("#panel h2").lower() == f"token {len(tokens('sampling'))}"
    page.press("ArrowUp")
    above = page.evaluate(f"{chosen}.getBoundingClientRect().top")
    page.press("ArrowDown")
    assert page.evaluate(f"{chosen}.getBoundingClientRect().top") > above
    page.press("Enter")
    assert page.evaluate("document.activeElement.id") == "panel"
    page.press("Escape")
    assert page.evaluate("[document.activeElement.id, document.querySelector('.token.chosen')]") == ["tokens", None]


@of("sampling")
def test_controls_have_accessible_names(page: Browser) -> None:
    for role in ("button", "combobox", "slider", "listbox", "radio"):
        found = page.names(role)
        assert found
        assert all(found), role
    token = tokens("sampling")[0]
    reported = (
        f"Token 1 of 24: “{token.piece.strip()}”, probability {words.percent(token.raw_probability)}, rank {token.rank}"
    )
    assert reported in page.names("option")
    assert "Dark" in page.names("radio")


@of("sampling")
def test_theme_follows_the_desktop_and_the_theme_buttons(page: Browser) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    line = "getComputedStyle(document.querySelector('.token')).backgroundImage"
    light, underline = page.evaluate(ground), page.evaluate(line)
    page.dark(True)
    assert page.evaluate(ground) == "rgb(20, 23, 27)" != light
    assert page.evaluate(line) != underline
    page.click("#theme button", 1)
    assert page.evaluate(ground) == light
    page.dark(False)
    page.click("#theme button", 2)
    assert page.evaluate(ground) == "rgb(20, 23, 27)"


@of("sampling")
def test_timeline_rewinds_and_plays_the_text(page: Browser) -> None:
    ahead = "document.querySelectorAll('#tokens .ahead').length"
    page.evaluate("document.getElementById('place').focus()")
    page.press("Home", "ArrowRight", "ArrowRight", "ArrowRight")
    assert page.evaluate(ahead) == 21
    assert page.text("#count") == "3 / 24"
    assert page.text("#panel h2").lower() == "token 3"
    page.choose("#speed", "1")
    page.evaluate("document.activeElement.blur()")
    page.press(" ")
    assert page.evaluate("document.getElementById('play').getAttribute('aria-label')") == "Pause"
    page.evaluate(
        "new Promise((done) => new MutationObserver(() => { if (document.querySelector('#count').textContent"
        " !== '3 / 24') done(0); }).observe(document.getElementById('count'), {childList: true}))"
    )
    page.click("#play")
    assert page.evaluate("document.getElementById('play').getAttribute('aria-label')") == "Play"
    assert page.evaluate(ahead) < 21


@of("sampling")
def test_text_button_shows_the_other_sequence(page: Browser) -> None:
    page.click("#texts button", 1)
    page.click("#tokens .token", 2)
    assert page.text("#panel .why") == core.explain_token(tokens("sampling", 1)[2])


@of("sampling")
def test_page_formats_numbers_like_the_program(page: Browser) -> None:
    """The script's own functions, taken out of the page: a module exports nothing."""
    script = page.evaluate(
        "document.querySelector('script[type=module]').textContent.split('// Elements made by hand')[0]"
    )
    formatters: list[tuple[str, Callable[[Any], str], Sequence[float]]] = [
        ("percent", words.percent, SHARES), ("briefPercent", words.brief_percent, SHARES),
        ("treeShare", words.compact_share, SHARES),
        ("size", words.size, SIZES), ("decimal", words.decimal, [n / 8 - 3 for n in range(50)]),
    ]  # fmt: skip
    for name, format_value, values in formatters:
        reported = page.evaluate(
            f"(async () => {{ {script}; return {json.dumps(values)}.map((value) => {name}(value)); }})()"
        )
        assert reported == [format_value(value) for value in values], name


@of("beam_search")
def test_beam_tree_shows_candidates_and_their_explanations(page: Browser) -> None:
    steps = [event for event in events("beam_search") if isinstance(event, BeamStep)]
    stored = sum(candidate.fate != "pruned" for step in steps for candidate in step.candidates)
    assert page.evaluate("document.querySelectorAll('#tree .node').length") == 1 + stored
    page.click("#tree-tools button")
    assert page.evaluate("document.querySelectorAll('#tree .node').length") == 1 + sum(len(s.candidates) for s in steps)
    pruned = next(candidate for candidate in steps[2].candidates if candidate.fate == "pruned")
    page.click(f"#tree-canvas-{pruned.node} rect")
    assert page.text("#panel .why") == f"Pruned at step 3. {core.explain_candidate(pruned, steps[2], 3)}"
    funnel = next(one for one in steps[2].funnels if one.parent == pruned.parent)
    shown = "[...document.querySelectorAll('#panel .funnel b')].map((count) => count.textContent)"
    assert page.evaluate(shown) == [*(f"{stage.survivors:,}" for stage in funnel.stages), "1"]
    page.press("ArrowLeft")
    assert page.evaluate("Number(document.querySelector('.node.chosen').dataset.node)") == pruned.parent
    overlaps = page.evaluate(
        "(() => { const b = [...document.querySelectorAll('#tree .node rect')].map((r) => r.getBoundingClientRect());"
        "return b.some((a, i) => b.some((c, j) => i < j && a.left < c.right && c.left < a.right && a.top < c.bottom"
        " && c.top < a.bottom)); })()"
    )
    assert not overlaps
    page.click("#tokens .token", 1)
    assert page.text("#panel .why").startswith("Kept at step 2.")


@of("beam_search")
def test_timeline_rewinds_a_beam_search(page: Browser) -> None:
    step = [event for event in events("beam_search") if isinstance(event, BeamStep)][3]
    page.evaluate("document.getElementById('place').focus()")
    page.press("Home", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight")
    assert page.evaluate("document.querySelectorAll('#tokens .token').length") == 4
    assert page.evaluate("Number(document.querySelectorAll('.node.best')[3].dataset.node)") == step.best


@of("speculative")
def test_draft_rounds_show_explanations_and_token_origins(page: Browser) -> None:
    rounds = [event for event in events("speculative") if isinstance(event, DraftRound)]
    assert page.evaluate("document.querySelectorAll('.round').length") == len(rounds)
    page.click(".round", 1)
    assert core.explain_round(rounds[1]) in page.text("#round-why")
    node = rounds[1].nodes[0]
    page.click(f"#round-canvas-{node.node} rect")
    assert page.text("#panel .why").endswith(core.explain_draft(node, rounds[1]))
    page.press("Home")
    page.evaluate("document.getElementById('strip').focus()")
    page.press("Home")
    assert core.explain_round(rounds[0]) in page.text("#round-why")
    page.choose("#colouring", "origin")
    origins = page.evaluate("[...document.querySelectorAll('#tokens .token')].map((t) => t.dataset.origin)")
    assert origins == [token.origin for token in tokens("speculative")]


def test_html_in_prompt_and_tokens_is_shown_as_text(browser: Browser, folder: Path) -> None:
    hostile_events: list[Event] = []
    for event in events("sampling"):
        if isinstance(event, RunStarted):
            event = replace(event, prompt=(PromptToken(1, EVIL),))
        hostile_events.append(replace(event, text=EVIL, piece=EVIL) if isinstance(event, TokenChosen) else event)
    browser.open(core.page(hostile_events, folder / "hostile.html"))
    assert browser.text("#prompt") == EVIL
    assert browser.texts("#tokens .token")[3] == EVIL
    browser.click("#tokens .token", 3)
    assert browser.evaluate("[document.querySelectorAll('img').length, document.title === 'caught']") == [0, False]
    assert len(browser.requests) == 1


@pytest.mark.parametrize("width", [320, 390, 768])
def test_page_on_a_narrow_screen_does_not_overflow(browser: Browser, folder: Path, width: int) -> None:
    browser.open(core.page(events("speculative"), folder / "narrow.html"), width, 800)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("getComputedStyle(document.getElementById('panel')).display") == "none"
    browser.click("#tokens .token", 2)
    assert browser.evaluate(
        "document.querySelector('.token.chosen').getBoundingClientRect().bottom"
    ) < browser.evaluate("document.getElementById('panel').getBoundingClientRect().top")
    browser.click("#panel .close")
    assert browser.evaluate("document.querySelector('.token.chosen')") is None


@pytest.mark.parametrize("kind", ["sampling", "beam_search", "speculative"])
def test_page_in_chinese_has_no_untranslated_labels(browser: Browser, folder: Path, kind: str) -> None:
    """Return the page's own texts, without tokens and terms of the field."""
    set_language("zh_CN")
    try:
        path = core.page(events(kind), folder / f"{kind}-zh.html")
    finally:
        set_language(ENGLISH)
    browser.open(path)
    browser.click("#tokens .token", 3)
    assert browser.evaluate("document.documentElement.lang") == "zh-CN"
    named = "[...document.querySelectorAll('[aria-label]')].map((part) => part.getAttribute('aria-label'))"
    places = "h2, h3, th, dt, option, #legend span, .key span, #made"
    titles = f"[...document.querySelectorAll('{places}')].map((part) => part.textContent)"
    reported = [*browser.evaluate(named), *browser.evaluate(titles)]
    settings = {name for event in events(kind) if isinstance(event, RunStarted) for name, _ in event.settings}
    allowed = re.compile(r"(storyteller|draft|log p|≤.*|[0-9.]+×|[…\W]*|dynamic|cpu, float32|Top-[pk]|  )*")
    english = [text for text in reported if not re.search("[\u4e00-\u9fff]", text) and not allowed.fullmatch(text)]
    assert sorted(set(english) - settings) == []
    assert "{" not in "".join(reported)
    assert browser.errors == []


def test_selector_shows_the_other_runs_of_a_page(browser: Browser, tmp_path: Path) -> None:
    """Each choice starts the page again with another run: text, tree, keys and theme work as for the first."""
    kinds = ("sampling", "beam_search", "speculative")
    runs = [PageRun(events(kind), "KeyError: <b>" if kind == "speculative" else "") for kind in kinds]
    path = runs_page(runs, tmp_path / "runs.html")
    browser.open(path)
    assert browser.evaluate("document.getElementById('run-choice').options.length") == 3
    started = browser.evaluate("document.getElementById('made').textContent")
    for place, kind in ((1, "beam_search"), (2, "speculative"), (0, "sampling"), (2, "speculative")):
        browser.choose("#run-choice", str(place))
        browser.painted()
        assert browser.evaluate("document.getElementById('run-choice').value") == str(place)
        assert browser.evaluate("document.getElementById('tree').hidden") is (kind != "beam_search")
        assert browser.evaluate("document.getElementById('rounds').hidden") is (kind != "speculative")
        assert ("KeyError: <b>" in browser.text("#notices")) is (kind == "speculative")
        assert (browser.evaluate("document.getElementById('made').textContent") == started) is (kind == "sampling")
        if kind != "beam_search":
            browser.click("#tokens .token", 2)
            assert browser.text("#panel h2").lower() == "token 3"
            browser.press("Escape")
            assert browser.evaluate("document.querySelectorAll('.token.chosen').length") == 0
    assert browser.requests == [path.as_uri()]
    assert browser.errors == []
