"""The registry of drafters: one file adds one, which a request can then use by name."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from decodescope import core
from decodescope.core.decoding.speculation import drafters
from tests.core import tiny

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
(NEW_DRAFTER,) = (code for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "DRAFTER = " in code)
"""The complete example of the page on the architecture."""


@pytest.fixture
def repeat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A drafter in a file of its own, which no other file mentions."""
    (tmp_path / "repeat_drafter.py").write_text(NEW_DRAFTER)
    monkeypatch.setattr(drafters, "__path__", [*drafters.__path__, str(tmp_path)])
    monkeypatch.setattr(drafters.registry, "_entries", None)
    name = f"{drafters.__name__}.repeat_drafter"
    yield "repeat"
    sys.modules.pop(name, None)
    vars(drafters).pop("repeat_drafter", None)


def test_registry_finds_every_built_in_drafter() -> None:
    names = ["draft_model", "prompt_lookup", "lookahead", "early_exit", "prediction_heads"]
    assert list(drafters.registry) == names
    assert [name for name, kind in drafters.registry.items() if kind.combines] == ["prompt_lookup"]


@pytest.mark.parametrize("samples", [False, True])
def test_a_new_file_is_a_drafter_that_a_request_can_use(
    repeat: str, samples: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert repeat in drafters.registry
    committed = list[int]()
    added = sys.modules[f"{drafters.__name__}.repeat_drafter"].RepeatDrafter
    monkeypatch.setattr(added, "commit", lambda self, accepted: committed.append(len(accepted)))
    model, ids = tiny.shared("llama"), tiny.prompt()
    config = {"max_new_tokens": 16, "do_sample": samples}
    options = {"extra_drafters": repeat, "schedule": "constant"}
    result = core.run(model, core.Request(ids, config, strategy="assisted", options=options, seed=3))
    events = list(core.stream(model, core.Request(ids, config, strategy="assisted", options=options, seed=3)))
    rounds = [event for event in events if isinstance(event, core.events.DraftRound)]
    assert rounds
    assert all(node.drafter == 0 for one in rounds for node in one.nodes[1:])
    assert len(committed) == 2 * len(rounds), "once in each round of both runs"
    if not samples:
        assert result.sequences == core.run(model, core.Request(ids, config, strategy="greedy")).sequences


def test_several_drafters_propose_together(repeat: str) -> None:
    model, ids = tiny.shared("llama"), tiny.prompt()
    config = {"max_new_tokens": 16}
    for options in ({"extra_drafters": "repeat, prompt_lookup"}, {"extra_drafters": "repeat", "with_lookup": True}):
        result = core.run(model, core.Request(ids, config, strategy="assisted", options=options))
        assert result.sequences == core.run(model, core.Request(ids, config, strategy="greedy")).sequences
        sources = core.strategies.registry["assisted"].drafts_from(options)
        assert len(sources) == 2


@pytest.mark.parametrize("name", ["promt_lookup", "draft_model", "lookahead"])
def test_unknown_drafter_error_lists_the_existing_ones(name: str) -> None:
    request = core.Request(tiny.prompt(), {}, strategy="assisted", options={"extra_drafters": name})
    with pytest.raises(core.errors.ParameterError) as caught:
        core.run(tiny.shared("llama"), request)
    assert name in caught.value.cause
    assert "prompt_lookup" in caught.value.remedy
    assert caught.value.parameter == "extra_drafters"


def test_extra_drafters_have_no_equivalent_in_generate() -> None:
    request = core.Request("Hi", {}, strategy="assisted", options={"extra_drafters": "prompt_lookup"})
    assert "drafters" in (core.why_not_generate(request) or "")
