"""Texts for the settings that differ from those of a run."""

from __future__ import annotations

from dataclasses import replace

from decodescope.app.state.setting_changes import list_changes
from decodescope.app.state.worker_messages import LoadRequest, RunRequest

RAN = RunRequest(
    "Once",
    strategy="sampling",
    config={"temperature": 0.8, "max_new_tokens": 40},
    cache="quantized",
    cache_options={"nbits": 4},
    load=LoadRequest("storyteller"),
)


def test_equal_settings_have_no_changes() -> None:
    assert list_changes(RAN, replace(RAN, prompt="Another", when_full="drop", top_n=3)) == []


def test_every_change_lists_old_and_new_value() -> None:
    now = replace(
        RAN,
        config={"temperature": 1.9, "max_new_tokens": 40, "top_k": 5},
        cache_options={"nbits": 2},
        seed=7,
        load=LoadRequest("chat", device="cpu"),
    )
    reported = dict(list_changes(RAN, now))
    assert reported["Model"] == "storyteller → chat"
    assert reported["Temperature"] == "0.8 → 1.9"
    assert reported["Seed"] == "0 → 7"
    assert reported["Device"] == "auto → cpu"
    assert "off → 5" in reported.values()
    assert "4 → 2" in reported.values()


def test_other_strategy_is_listed_as_one_change() -> None:
    now = replace(RAN, strategy="assisted", config={"max_new_tokens": 9}, cache="static", draft_names=("small",))
    assert dict(list_changes(RAN, now)).keys() == {"Strategy", "Cache", "Drafts"}
