"""The glossary: every part of the program has its term, every term its sentence at each depth and a real source."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest

from decodescope.core import caches, glossary, strategies
from decodescope.resources import depth, language

NAMES = [f"strategy.{name}" for name in strategies.registry] + [f"cache.{name}" for name in caches.registry]
SETTINGS = {
    f"param.{parameter.name}"
    for entry in (*strategies.registry.values(), *caches.registry.values())
    for parameter in entry.parameters
}


@pytest.mark.parametrize("name", [*NAMES, *sorted(SETTINGS)])
def test_every_program_name_has_a_term(name: str) -> None:
    assert glossary.term_for(name) is not None, (
        f"{name} has no term. Give the entry of its file a description=EntryDescription(…) "
        f"(core/common/entry_description.py), or add {name!r} to `of` of a term in resources/glossary/."
    )


def test_terms_refer_only_to_existing_names() -> None:
    kinds = {"strategy", "cache", "param", "view", "row", "panel", "control", "stage"}
    named = [name for term in glossary.terms().values() for name in term.of]
    assert len(named) == len(set(named))
    assert {name.split(".")[0] for name in named} <= kinds
    assert {name for name in named if name.split(".")[0] in ("strategy", "cache", "param")} <= {*NAMES, *SETTINGS}


@pytest.mark.parametrize("code", language.LANGUAGES)
def test_every_term_has_three_sentences(code: str) -> None:
    language.set_language(code)
    try:
        for term in glossary.terms().values():
            reported = []
            for each in depth.DEPTHS:
                with depth.depth_context(each):
                    reported.append(term.sentence)
            assert len(set(reported)) == 3, term.id
            assert all(sentence.endswith((".", "。")) for sentence in reported), term.id
            if code != language.ENGLISH:
                assert term.title == term.term or term.title.endswith(f"（{term.term}）")
    finally:
        language.set_language(language.ENGLISH)


def test_plain_sentences_use_no_technical_word() -> None:
    words = r"token|logit|probabilit|distribution|argmax|entropy|softmax|tensor|decod|hypothes|\bp\("
    for term in glossary.terms().values():
        assert not re.search(words, term.plain, re.IGNORECASE), term.plain


def test_every_source_is_well_formed() -> None:
    for term in glossary.terms().values():
        address = urlsplit(term.address)
        assert address.scheme == "https"
        assert "." in address.netloc
        assert re.search(r"\((19|20)\d\d\)$|documentation of|IEC|Loom", term.source), f"{term.source}: add the year"
        if "arxiv.org" in term.address:
            assert re.fullmatch(r"https://arxiv\.org/abs/\d{4}\.\d{4,5}", term.address)


@pytest.mark.parametrize(
    ("text", "first"),
    [("temp", "temperature"), ("top-p", "top_p"), ("nucleus", "top_p"), ("核采样", "top_p"), ("kv", "kv_cache"),
     ("penalty rep", "repetition_penalty"), ("束搜索", "beam_search"), ("EOS", "eos"), ("loom", "branch")],
)  # fmt: skip
def test_search_by_a_few_letters_finds_a_term(text: str, first: str) -> None:
    assert glossary.search_terms(text)[0].id == first


def test_empty_search_returns_all_terms_and_nonsense_none() -> None:
    assert len(glossary.search_terms("")) == len(glossary.terms()) > 70
    assert glossary.search_terms("xyzzy") == []
    with pytest.raises(KeyError):
        glossary.term("xyzzy")


def test_terms_are_found_in_the_selected_language() -> None:
    language.set_language("zh_CN")
    try:
        assert glossary.search_terms("投机")[0].id == "speculative"
        assert glossary.term("token").title == "词元（token）"
    finally:
        language.set_language(language.ENGLISH)


def test_an_entry_without_a_written_term_has_that_of_its_description() -> None:
    from dataclasses import replace

    from decodescope.core.common.entry_description import EntryDescription

    about = EntryDescription(
        "In plain words.", "In usual words.", "Exactly.", "Nobody: A paper (2020)", "https://a.org"
    )
    new = replace(caches.registry["sink"], name="later", aliases=(), title="Later", description=about)
    caches.registry.set_plugin_entries([new])
    try:
        term = glossary.term_for("cache.later")
        assert term is not None
        assert (term.term, term.plain, term.of) == ("Later", "In plain words.", ("cache.later",))
        assert glossary.terms()["cache_later"] == term
    finally:
        caches.registry.set_plugin_entries([])
    assert glossary.term_for("cache.later") is None
