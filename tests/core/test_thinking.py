"""Recognition of thinking: marks derived from chat templates and tokens, and the thinking of answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
import torch

from decodescope import core
from decodescope.core.events import RunStarted, TokenChosen
from decodescope.core.models.chat_templates import render_chat
from decodescope.core.thinking import (
    KNOWN_MARKS,
    ThinkingMark,
    ThinkingStream,
    derive_marks,
    find_thinking,
    split_answer,
    split_text,
)
from decodescope.core.trace.page.page_data import collect_page_data
from tests.core import thinking_models

_LOOP = "{% for m in messages %}{% if m.role == 'user' %}<|user|>{{ m.content }}{% else %}<|bot|>"
_END = "{% endif %}{% endfor %}{% if add_generation_prompt %}<|bot|>{% endif %}"
TEMPLATES = {
    "reasoning before the answer": (
        _LOOP + "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}{{ m.content }}"
        "<|end|>" + _END,
        ThinkingMark("<think>", "</think>"),
    ),
    "opened by the prompt": (
        _LOOP
        + "<deep:thought>\n{{ m.reasoning_content or '' }}\n</deep:thought>\n{{ m.content }}"
        + _END
        + "<deep:thought>\n",
        ThinkingMark("<deep:thought>", "</deep:thought>"),
    ),
    "parts of a message": (
        _LOOP + "{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{% if p.type == "
        "'thinking' %}[MUSE]{{ p.thinking }}[/MUSE]{% else %}{{ p.text }}{% endif %}{% endfor %}{% endif %}</s>" + _END,
        ThinkingMark("[MUSE]", "[/MUSE]"),
    ),
    "channels": (
        "{% for m in messages %}<|start|>{{ m.role }}{% if m.reasoning_content %}<|channel|>musing<|message|>"
        "{{ m.reasoning_content }}<|end|><|start|>assistant{% endif %}{% if m.role == 'assistant' %}<|channel|>final"
        "{% endif %}<|message|>{{ m.content }}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}<|start|>assistant{% endif %}",
        ThinkingMark("<|channel|>musing<|message|>", "<|end|>", "<|start|>assistant<|channel|>final<|message|>"),
    ),
    "earlier thinking is removed": (
        _LOOP + "{{ m.content.split('</ponder-thought>')[-1] }}" + _END,
        ThinkingMark("<ponder-thought>", "</ponder-thought>"),
    ),
}


STREAMED = (
    ("Two < three.\n</think>\n\nYes, <b>a</b>.", True),
    ("<think>\nHm, is `</think>` a mark?\n</think>\n\nIt is.", False),
    ("\n<think>One.</think>\n<think>Two.</think> Yes.", False),
    ("<think></think>Yes.\n", False),
    ("<think>One. Cut off <", False),
    ("  Yes, `<think>` is a mark. ", False),
    ("```\n<think>\n```\nand <think> are text", False),
    ("<think>repeated</think> Yes", True),
)


@pytest.mark.parametrize(("text", "is_open"), STREAMED)
def test_streamed_thinking_is_that_of_the_complete_answer_however_the_text_is_divided(text: str, is_open: bool) -> None:
    marks = KNOWN_MARKS[:1]
    random = Random(1)
    for held_back in (0, 1, 5):
        for _ in range(40):
            cuts = sorted(random.sample(range(len(text) + 1), random.randint(0, min(9, len(text)))))
            parts = [text[start:stop] for start, stop in pairwise([0, *cuts, len(text)])]
            stream, found = ThinkingStream(marks, is_open), []
            for part in parts:
                stream.add(part, part, is_special=False)
                found += stream.take(held_back)
            found += stream.take(has_ended=True)
            whole = split_answer(parts, parts, marks, is_open)
            assert "".join(part for is_thinking, part in found if is_thinking) == whole.thinking
            assert "".join(part for is_thinking, part in found if not is_thinking) == whole.body


def test_streamed_channels_of_special_tokens_are_split_without_their_names() -> None:
    mark = KNOWN_MARKS[-1]
    parts = re.findall(r"<[^>]*>|\w+", "<|channel|>analysis<|message|>Hm" + mark.closing + mark.header + "Yes")
    stream, found = ThinkingStream([mark], is_open=False), []
    for part in parts:
        is_special = part.startswith("<|")
        stream.add(part, "" if is_special else part, is_special)
        found += stream.take()
    assert [*found, *stream.take(has_ended=True)] == [(True, "Hm"), (False, "Yes")]


def _render(template: str) -> Callable[[Sequence[Mapping[str, object]]], str]:
    return lambda messages: render_chat(template, messages, {})


@pytest.mark.parametrize("name", TEMPLATES)
def test_marks_of_a_chat_template_are_derived(name: str) -> None:
    template, expected = TEMPLATES[name]
    assert derive_marks(_render(template), template, [])[0] == expected


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (["<|start_of_reasoning|>", "<|end_of_reasoning|>"], ("<|start_of_reasoning|>", "<|end_of_reasoning|>")),
        (["<|BEGIN_THOUGHT|>", "<|END_THOUGHT|>"], ("<|BEGIN_THOUGHT|>", "<|END_THOUGHT|>")),
        (["<musing_think>", "</musing_think>"], ("<musing_think>", "</musing_think>")),
        (["◁think▷", "◁/think▷"], ("◁think▷", "◁/think▷")),
        (["<|inner_prefix|>", "<|inner_suffix|>"], ("<|inner_prefix|>", "<|inner_suffix|>")),
    ],
)
def test_marks_of_added_tokens_are_derived(tokens: list[str], expected: tuple[str, str]) -> None:
    assert [mark[:2] for mark in derive_marks(None, "", ["<s>", *tokens])] == [expected]


def test_marks_without_thinking_are_none() -> None:
    template = _LOOP + "{{ m.content }}" + _END
    assert derive_marks(_render(template), template, ["<s>", "</s>", "<|im_start|>", "<|think|>"]) == ()


@pytest.mark.parametrize("mark", KNOWN_MARKS)
def test_answer_in_known_marks_is_split(mark: ThinkingMark) -> None:
    answer = f"{mark.opening}\nA plan.\n{mark.closing}{mark.header}\n\nThe answer."
    found = split_text(answer)
    assert (found.thinking, found.body, found.is_open) == ("A plan.", "The answer.", False)
    cut = split_text(f"{mark.opening}A plan")
    assert (cut.thinking, cut.body, cut.is_open) == ("A plan", "", True)
    opened = split_text(f"A plan.{mark.closing}{mark.header}The answer.", is_open=True)
    assert (opened.thinking, opened.body) == ("A plan.", "The answer.")
    cut_off = split_text("A plan", is_open=True)
    assert (cut_off.thinking, cut_off.body, cut_off.is_open) == ("A plan", "", True)


@pytest.mark.parametrize(
    ("text", "thinking", "body"),
    [
        ("Use the tag </think> to close it, like `</think>`.", "", None),
        ("The tags <think> and </think> mark it.", "", None),
        ("```html\n<think>x</think>\n```", "", None),
        ("reasoning that the prompt opened</think>answer", "reasoning that the prompt opened", "answer"),
        ("<think></think>\n\nhi", "", "hi"),
        ("<think>a</think>b<think>c</think>d", "a\n\nc", "bd"),
        ("<think>\nuse </think> literally? yes\n</think>\nanswer", "use </think> literally? yes", "answer"),
        ("<think>a</think>Close it with `</think>`.", "a", "Close it with `</think>`."),
        ("analysisThe user asks.assistantfinalHello", "The user asks.", "Hello"),
        ("analysis of the text", "", None),
        ("<think>hm\nso</think>\n\nYes.", "hm\nso", "Yes."),
        ("<THINKING>a</THINKING> b", "a", "b"),
        ("Write `</think>` to close it.", "", None),
        ("A text with <think> in it.", "", None),
        (" ◁think▷a◁/think▷b", "a", "b"),
    ],
)
def test_answer_that_mentions_a_mark_keeps_it(text: str, thinking: str, body: str | None) -> None:
    found = split_text(text)
    assert (found.thinking, found.body) == (thinking, text if body is None else body)


def test_answer_of_special_tokens_is_split_by_tokens() -> None:
    parts = ["<|channel|>", "analysis", "<|message|>", "Hm", ".", "<|end|>", "<|start|>", "assistant", "<|channel|>",
             "final", "<|message|>", "Yes", "!", "<|return|>"]  # fmt: skip
    visible = ["" if part.startswith("<|") else part for part in parts]
    special = {index for index, part in enumerate(parts) if part.startswith("<|")}
    found = split_answer(parts, visible, KNOWN_MARKS, False, special)
    assert (found.thinking, found.body, found.ranges, found.token_count) == ("Hm.", "Yes!", ((0, 11),), 11)
    assert [found.contains(index) for index in (0, 10, 11)] == [True, True, False]


def test_mark_that_a_token_continues_is_cut_inside_it() -> None:
    parts = ["<th", "ink>A", " plan", "</", "think>\n\n", "Yes"]
    found = split_answer(parts, parts, KNOWN_MARKS, False)
    assert (found.thinking, found.body, found.ranges) == ("A plan", "Yes", ((0, 5),))


CHAT = [{"role": "user", "content": "Is </think> a tag?"}]


def test_run_records_marks_and_begins_inside_thinking_that_the_prompt_opened() -> None:
    model = thinking_models.model()
    events = list(core.stream(model, core.Request(CHAT, {"max_new_tokens": 5, "eos_token_id": None})))
    started, tokens = events[0], [event for event in events if isinstance(event, TokenChosen)]
    assert isinstance(started, RunStarted)
    assert started.thinking == (("<think>", "</think>", ""),)
    found = find_thinking(started, tokens)
    assert found.is_open
    assert found.ranges == ((0, 5),)
    assert found.body == ""
    without = replace(started, prompt=started.prompt[:-1])  # the prompt did not open it
    assert find_thinking(without, tokens).ranges == ()


def test_recorded_generate_and_recordings_have_the_same_thinking(tmp_path: Path) -> None:
    model = thinking_models.model()
    ids = core.encode(model, CHAT)
    settings = {"max_new_tokens": 6, "eos_token_id": None}
    with core.capture(model.model, model.tokenizer) as captured:
        model.model.generate(torch.tensor([ids]), do_sample=False, **settings)
    request = core.Request(ids, settings)
    own = list(core.record(str(tmp_path / "run.decodescope"), core.stream(model, request), request))
    replayed = list(core.replay(str(tmp_path / "run.decodescope")))
    for events in (captured.runs[0].events, own, replayed):
        started = next(event for event in events if isinstance(event, RunStarted))
        tokens = [event for event in events if isinstance(event, TokenChosen)]
        assert find_thinking(started, tokens).ranges == ((0, 6),)


def test_page_marks_thinking_and_names_its_share() -> None:
    model = thinking_models.model()
    events = list(core.stream(model, core.Request(CHAT, {"max_new_tokens": 6, "eos_token_id": None})))
    third = next(event for event in events if isinstance(event, TokenChosen) and event.step == 2)
    events[events.index(third)] = replace(third, piece="</think>", text="</think>")
    (text,) = collect_page_data(events)["texts"]
    assert [bool(token.get("thinking")) for token in text["tokens"]] == [True] * 3 + [False] * 3
    assert text["thinking"] == "3 of 6 tokens (50 %)"
