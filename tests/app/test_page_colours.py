"""The HTML page of a run has the colours of the window."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from decodescope import core
from decodescope.app.theme.palettes import DARK, LIGHT, RAMPS
from decodescope.core import caches, strategies
from decodescope.core.events import RunStarted
from tests.core.test_html_page import data, events

NAMES = {
    "window": "window", "panel": "panel", "field": "field", "line": "line", "ink": "text", "muted": "muted",
    "faint": "faint", "accent": "accent", "on-accent": "on_accent", "tint": "tint", "hover": "hover", "kept": "kept",
    "pruned": "pruned", "best": "best", "finished": "finished", "refused": "refused",
    "thinking": "thinking",
}  # fmt: skip


def colours() -> dict[str, tuple[str, str]]:
    page = core.page_text(events("sampling"))
    return {name: (light, dark) for name, light, dark in re.findall(r"--([\w-]+): light-dark\((#\w+), (#\w+)\)", page)}


def test_page_colours_match_theme() -> None:
    found = colours()
    assert {css: found[css] for css in NAMES} == {css: (LIGHT[name], DARK[name]) for css, name in NAMES.items()}


@pytest.mark.parametrize("stop", range(5))
def test_page_probability_ramp_matches_theme(stop: int) -> None:
    assert colours()[f"ramp-{stop}"] == (RAMPS["light"][stop], RAMPS["dark"][stop])


def test_page_lists_settings_by_title() -> None:
    started = next(event for event in events("sampling") if isinstance(event, RunStarted))
    named = (("max_new_tokens", 60), ("nbits", 4), ("of another version", 1))
    page = core.page_text([replace(started, settings=named), *events("sampling")[1:]])
    reported = dict(data(page)["settings"])
    strategy = strategies.registry["sampling"]
    assert reported[strategy.parameter("max_new_tokens").title] == "60"
    assert reported[next(p.title for p in caches.registry["quantized"].parameters if p.name == "nbits")] == "4"
    assert reported["of another version"] == "1"
    assert "max_new_tokens" not in reported
    assert reported["Cache"] == caches.registry[started.cache].title
