"""Pages of the guide as they are shown: generated where none is written, completed, English without a translation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from decodescope.app.state import guide_pages
from decodescope.core import caches, claims, strategies
from decodescope.core.common.entry_description import EntryDescription
from decodescope.core.parameter import Parameter

RANK = Parameter("rank", "Rank", "int", 2, "Rank of the token | 1 is the likeliest.", minimum=1, option=True)
DESCRIPTION = EntryDescription(
    plain="Takes a word that is not the best.",
    usual="Takes the token at a fixed rank.",
    exact="The token at position r.",
    source="Nobody: A paper (2020)",
    address="https://example.org/paper",
)


@pytest.fixture
def new_strategy() -> Iterator[strategies.Strategy]:
    greedy = strategies.registry["greedy"]
    entry = replace(
        greedy, name="fixed_rank", title="Fixed rank", summary="Takes the second.", description=DESCRIPTION,
        parameters=(RANK, *greedy.parameters), claims=(), aliases=(), selects=lambda flags: False,
    )  # fmt: skip
    strategies.registry.set_plugin_entries([entry])
    yield entry
    strategies.registry.set_plugin_entries([])


def test_a_strategy_without_a_page_has_a_generated_one(new_strategy: strategies.Strategy, tmp_path: Path) -> None:
    name = "guide/strategies/fixed_rank.md"
    assert guide_pages.find_page(tmp_path, name) == name
    assert guide_pages.page_text(tmp_path, name) == (
        "# Fixed rank\n\n*Takes the second.*\n\nTakes the token at a fixed rank.\n\n## Exactly\n\n"
        "The token at position r.\n\n| setting | what it does |\n| --- | --- |\n"
        "| `rank` | Rank of the token \\| 1 is the likeliest. |\n\n"
        "Source: [Nobody: A paper (2020)](https://example.org/paper).\n"
    )
    chinese = guide_pages.page_text(tmp_path, "guide/zh_CN/strategies/fixed_rank.md")
    assert "## 精确讲解" in chinese
    assert "| 设置 | 作用 |" in chinese
    assert "Takes the token at a fixed rank." in chinese, "a text without a translation is English"


def test_the_index_lists_what_it_lacks(new_strategy: strategies.Strategy) -> None:
    written = "| [Greedy](strategies/greedy.md) | the likeliest |\n\n## Caches\n"
    text = guide_pages.complete_page("guide/README.md", written)
    assert "| [Fixed rank](strategies/fixed_rank.md) | Takes the second. |\n" in text
    assert text.count("(strategies/greedy.md)") == 1
    assert text.endswith("\n\n## Caches\n")
    assert guide_pages.complete_page("guide/README.md", text) == text


def test_a_written_page_gets_rows_for_settings_it_lacks() -> None:
    written = "# Sink\n\n| setting | what it does |\n| --- | --- |\n| `window_length` | tokens |\n\nSource: x.\n"
    text = guide_pages.complete_page("guide/caches/sink.md", written)
    assert "| `window_length` | tokens |\n| `num_sink_tokens` | First tokens" in text
    assert text.endswith("|\n\nSource: x.\n")


def test_a_missing_translation_is_the_english_page(tmp_path: Path) -> None:
    page = tmp_path / "guide" / "new.md"
    page.parent.mkdir()
    page.write_text("# New\n", encoding="utf-8")
    assert guide_pages.find_page(tmp_path, "guide/zh_CN/new.md") == "guide/new.md"
    assert guide_pages.find_page(tmp_path, "guide/zh_CN/nothing.md") == ""


@pytest.mark.parametrize(
    ("name", "english", "language"),
    [
        ("guide/zh_CN/views/tree.md", "guide/views/tree.md", "zh_CN"),
        ("guide/views/tree.md", "guide/views/tree.md", "en"),
        ("stages.md", "stages.md", "en"),
    ],
)
def test_names_of_pages_are_converted_between_languages(name: str, english: str, language: str) -> None:
    assert guide_pages.english_name(name) == (english, language)
    assert guide_pages.localized_name(english, language) == name


def test_settings_of_the_sampling_panel_are_explained_by_plain_sampling() -> None:
    def own(name: str) -> set[str]:
        return {one.name for one in strategies.own_settings(strategies.registry[name])}

    assert {"temperature", "top_p", "seed_each"} <= own("sampling")
    assert "temperature" not in own("beam_sampling")
    assert not own("sampling") & {"max_new_tokens", "repetition_penalty", "eta_cutoff", "stages"}
    assert own("greedy") == set()
    assert {entry.name for entry in guide_pages.entry_pages().values()} == {*strategies.registry, *caches.registry}


def test_page_of_a_strategy_ends_with_the_claims_about_it() -> None:
    text = guide_pages.page_text(Path("docs"), "guide/strategies/greedy.md")
    claim, outcome = claims.named_claim("greedy-repeats").claim, claims.bundled_outcome("greedy-repeats")
    assert outcome is not None
    section = text.partition("## Claims\n\n")[2]
    assert section.startswith(f"- **{claim.title}.** {claim.exact} [{claim.source}]({claim.address}).")
    assert f"On the bundled storyteller: {claims.verdict_title(outcome.verdict)}; difference" in section
    assert text.count("## Claims") == 1


def test_generated_page_has_the_claims_of_its_entry(tmp_path: Path) -> None:
    claim = replace(claims.named_claim("greedy-repeats").claim, name="own", title="It is *new*")
    greedy = strategies.registry["greedy"]
    entry = replace(greedy, name="own", title="Own", aliases=(), claims=(claim,), selects=lambda flags: False)
    strategies.registry.set_plugin_entries([entry])
    try:
        text = guide_pages.page_text(tmp_path, "guide/strategies/own.md")
    finally:
        strategies.registry.set_plugin_entries([])
    assert "- **It is \\*new\\*.**" in text
    assert "On the bundled" not in text, "it was not tested on the bundled model"
