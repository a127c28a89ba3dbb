"""A run as one HTML file: its content, its isolation, and that it needs no other file."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from transformers import GenerationConfig

from decodescope import core
from decodescope.core.errors import FileNotWrittenError
from decodescope.core.events import (
    BeamStep,
    CacheMeasured,
    DraftRound,
    Event,
    Finished,
    PromptToken,
    RunStarted,
    TokenChosen,
    TokenCompared,
)
from tests.core import tiny

EVIL = '</script><img src=x onerror="document.title=1"><!-- ]]> & \u2028 ${title} \ud800'


@cache
def events(strategy: str) -> tuple[Event, ...]:
    settings: dict[str, Any] = {"max_new_tokens": 12, "eos_token_id": None}
    if strategy == "sampling":
        settings |= {"do_sample": True, "top_p": 0.9, "temperature": 0.8, "top_k": 0, "num_return_sequences": 2}
    if strategy == "beam_search":
        settings |= {"num_beams": 3, "num_return_sequences": 2}
    request = core.Request(tiny.prompt(), GenerationConfig(**settings), strategy=strategy, seed=1)
    return tuple(core.stream(tiny.shared("llama"), request))


def data(text: str) -> dict[str, Any]:
    """The run that a page holds, as a browser reads it."""
    found = re.search(r'<script id="run" type="application/json">(.*?)</script>', text, re.DOTALL)
    assert found
    held: dict[str, Any] = json.loads(found[1])
    return held


def test_every_token_is_in_the_page_with_its_figures_and_its_sentence() -> None:
    run = data(core.page_text(events("sampling")))
    chosen = [event for event in events("sampling") if isinstance(event, TokenChosen)]
    for sequence, text in enumerate(run["texts"]):
        result = [event for event in chosen if event.sequence == sequence]
        assert len(text["tokens"]) == len(result) == 12
        for token, event in zip(text["tokens"], result, strict=True):
            assert token["raw"] == pytest.approx(event.raw_probability, rel=1e-6)
            assert token["final"] == pytest.approx(event.probability, rel=1e-6)
            assert "".join(token["why"]) == core.explain_token(event)
            assert [token["why"][1::2]] == [
                [core.explain_token(event)[a:b] for a, b in core.explain_token(event).figures]
            ]
            assert [(item[0], item[4]) for item in token["others"]] == [(a.id, a.rank) for a in event.alternatives]
            assert [stage[1] for stage in token["funnel"]] == [stage.survivors for stage in event.funnel]
    assert [stage[0] for stage in run["stages"]] == ["model", "T 0.8", "top-p 0.9"]


def test_probability_just_below_one_is_not_rounded_to_one() -> None:
    first = next(event for event in events("greedy") if isinstance(event, TokenChosen))
    sure = replace(first, raw_probability=1 - 1e-12, raw_log_probability=-1e-12, log_probability=-float("inf"))
    [token] = data(core.page_text([sure]))["texts"][0]["tokens"]
    assert token["raw"] == 1 - 1e-12


def test_page_of_a_beam_search_contains_tree_and_ranking() -> None:
    run = data(core.page_text(events("beam_search")))
    steps = [event for event in events("beam_search") if isinstance(event, BeamStep)]
    assert [len(step["nodes"]) for step in run["beams"]["steps"]] == [len(step.candidates) for step in steps]
    for result, step in zip(run["beams"]["steps"], steps, strict=True):
        reported = [core.explain_candidate(candidate, step, 3) for candidate in step.candidates]
        assert ["".join(node["why"]) for node in result["nodes"]] == reported
        assert [node["fate"] for node in result["nodes"]] == [candidate.fate for candidate in step.candidates]
    assert len(run["beams"]["ranking"]) == 3


def test_page_of_a_speculative_run_contains_its_rounds() -> None:
    run = data(core.page_text(events("prompt_lookup")))
    rounds = [event for event in events("prompt_lookup") if isinstance(event, DraftRound)]
    assert [len(result["nodes"]) for result in run["rounds"]] == [len(event.nodes) for event in rounds]
    for result, event in zip(run["rounds"], rounds, strict=True):
        assert "".join(result["why"]) == core.explain_round(event)
        assert ["".join(node["why"]) for node in result["nodes"]] == [core.explain_draft(n, event) for n in event.nodes]


def test_page_contains_measured_and_predicted_memory() -> None:
    run = data(core.page_text(events("greedy")))
    measured = [event for event in events("greedy") if isinstance(event, CacheMeasured)]
    assert {bytes for _, bytes, _ in run["memory"]["points"]} == {event.bytes for event in measured}
    for _, bytes, sizes in run["memory"]["points"]:
        assert sum(sizes) == bytes
    predicted = dict(map(tuple, run["memory"]["predicted"]))
    assert [predicted[x] for x, _, _ in run["memory"]["points"] if x in predicted] == [
        bytes for x, bytes, _ in run["memory"]["points"] if x in predicted
    ]  # a cache that keeps everything grows as predicted


def test_page_of_a_scored_text_contains_the_second_model() -> None:
    one, other = tiny.shared("llama"), tiny.make("llama", seed=1)
    reported = tuple(core.score_stream(one, tiny.prompt(), second=other))
    run = data(core.page_text(reported))
    compared = [event for event in reported if isinstance(event, TokenCompared)]
    assert [token["second"]["rank"] for token in run["texts"][0]["tokens"]] == [event.rank for event in compared]
    assert run["second"] == other.name
    assert dict(run["settings"])["Strategy"] == "Scored text"
    assert not {"Seed", "Cache"} & set(dict(run["settings"])), "nothing is drawn, and no cache grows"
    chosen = [event.raw_log_probability for event in reported if isinstance(event, TokenChosen)]
    perplexity = float(dict(run["metrics"])["Perplexity"].replace(",", ""))
    assert perplexity == pytest.approx(math.exp(-sum(chosen) / len(chosen)), rel=0.05)


def test_page_of_a_branch_contains_its_beginning() -> None:
    started = next(event for event in events("greedy") if isinstance(event, RunStarted))
    run = data(
        core.page_text([replace(started, prompt=(), beginning=(PromptToken(7, "Once"), PromptToken(8, " more")))])
    )
    assert run["beginning"] == [["Once", 7], [" more", 8]]
    assert run["title"] == "Once more"


def test_page_contains_settings_and_metrics() -> None:
    run = data(core.page_text(events("sampling")))
    settings, figures = dict(run["settings"]), dict(run["metrics"])
    assert (settings["Strategy"], settings["Temperature"], settings["Seed"]) == ("Sampling", "0.8", "1")
    assert figures["Generated tokens"] == "24"


class PageReader(HTMLParser):
    """Collects what a browser would make of a page: its elements, and where they point to."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs


def read(text: str) -> PageReader:
    reader = PageReader()
    reader.feed(text)
    return reader


def hostile() -> list[Event]:
    """A run whose every text is an attack."""
    made: list[Event] = []
    for event in events("sampling"):
        if isinstance(event, RunStarted):
            event = replace(event, model=EVIL, prompt=(PromptToken(1, EVIL), *event.prompt), settings=((EVIL, EVIL),))
        if isinstance(event, TokenChosen):
            others = tuple(replace(item, text=EVIL) for item in event.alternatives)
            stages = tuple(replace(stage, label=EVIL, phrase=EVIL, name=EVIL) for stage in event.funnel)
            event = replace(event, piece=EVIL, text=EVIL, alternatives=others, funnel=stages)
        made.append(replace(event, texts=(EVIL,)) if isinstance(event, Finished) else event)
    return made


@pytest.mark.parametrize("title", ["", EVIL])
def test_hostile_text_does_not_become_markup(tmp_path: Path, title: str) -> None:
    plain, attacked = read(core.page_text(events("sampling"))), read(core.page_text(hostile(), title=title))
    assert attacked.tags == plain.tags, "a text has become an element"
    assert [name for name, _ in attacked.attributes] == [name for name, _ in plain.attributes]
    path = core.page(hostile(), tmp_path / "hostile.html", title=title)
    assert data(path.read_text(encoding="utf-8"))["texts"][0]["tokens"][3]["text"].startswith("</script><img")


@pytest.mark.parametrize("strategy", ["sampling", "beam_search", "prompt_lookup"])
def test_page_contains_no_external_address(strategy: str) -> None:
    text = core.page_text(events(strategy))
    bare = re.sub(r'(<script id="run" type="application/json">).*?(</script>)', r"\1\2", text, flags=re.DOTALL)
    code = re.sub(r"^\s*//.*$", "", bare, flags=re.MULTILINE)
    for forbidden in (
        "http:",
        "https:",
        "//",
        "url(",
        "@import",
        "import(",
        "fetch(",
        "XMLHttpRequest",
        "eval(",
        "innerHTML",
    ):
        assert forbidden not in code, forbidden
    assert not {"src", "href", "action", "style"} & {name for name, _ in read(text).attributes}


def test_content_security_policy_allows_no_source() -> None:
    [policy] = re.findall(r'Content-Security-Policy" content="(.*?)"', core.page_text([]))
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


def test_page_of_an_aborted_run() -> None:
    run = data(core.page_text(events("sampling")[:9]))
    assert run["texts"][0]["ending"] == "interrupted"
    assert run["texts"][0]["tokens"]
    assert data(core.page_text([]))["title"] == "Run"


def test_title_defaults_to_the_prompt() -> None:
    started = next(event for event in events("greedy") if isinstance(event, RunStarted))
    requested = replace(started, prompt=(PromptToken(1, "<|begin|>"), PromptToken(5, "Why is the sky\nblue? " * 9)))
    assert data(core.page_text([requested]))["title"].startswith("Why is the sky blue? Why")
    assert len(data(core.page_text([requested]))["title"]) <= 61
    assert "<title>Mine &amp; yours · Decodescope</title>" in core.page_text([requested], title="Mine & yours")


def test_page_of_a_long_run_is_a_few_megabytes() -> None:
    chosen = [event for event in events("sampling") if isinstance(event, TokenChosen) and event.sequence == 0]
    long = [replace(chosen[n % len(chosen)], step=n) for n in range(2000)]
    assert len(core.page_text(long)) < 3_000_000


def test_unwritable_path_raises_file_not_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileNotWrittenError) as reported:
        core.page([], tmp_path / "file" / "run.html")
    assert str(tmp_path) in reported.value.cause
    assert reported.value.remedy


def test_page_needs_neither_torch_nor_qt() -> None:
    heavy = {"torch", "transformers", "PySide6", "app"}
    script = (
        f"import sys; from decodescope import core; core.page_text([]); print(sorted({heavy!r} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
