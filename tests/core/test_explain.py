"""Explanations of a chosen token: every sentence is built from the values of its step."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import pytest
from transformers import GenerationConfig

from decodescope import core
from decodescope.core import explain_token
from decodescope.core.events import Alternative, LayerChoice, Origin, Stage, TokenChosen
from decodescope.core.explain.sentence import Sentence, SentenceNumber, capitalize, fill, together
from tests.core import tiny


def test_method_with_a_name_of_its_own_is_explained_by_rank_and_probability() -> None:
    best = token(method="fixed_rank", final_rank=1)
    assert explain_token(best) == "“fox” had 31 %, the highest of all, and was chosen by the method “fixed_rank”."
    third = token(method="fixed_rank")
    assert explain_token(third) == "“fox” had 31 %, the third most likely, and was chosen by the method “fixed_rank”."
    alone = token(method="fixed_rank", funnel=(*FUNNEL, cut("top-k 1", 1)))
    assert explain_token(alone).endswith("Only “fox” was left.")


def token(**more: Any) -> TokenChosen:
    fields: dict[str, Any] = {
        "step": 0, "sequence": 0, "id": 4, "piece": " fox", "text": " fox", "raw_probability": 0.25,
        "probability": 0.31, "raw_log_probability": -1.4, "log_probability": -1.2, "rank": 3, "entropy": 2.0,
        "seconds": 0.01, **more,
    }  # fmt: skip
    return TokenChosen(**fields)


def other(text: str, share: float, rank: int, **more: Any) -> Alternative:
    return Alternative(rank, text, share, share, -1.0, -1.0, rank, **more)


def model(*top: tuple[int, float]) -> Stage:
    return Stage("raw", "raw", 2048, 1, 1, top, kind="model", phrase="the model")


def cut(name: str, survivors: int, *top: tuple[int, float]) -> Stage:
    return Stage(name, name, survivors, 0.9, 0.9, top, 0.9, "cut", name)


def shift(phrase: str, *top: tuple[int, float]) -> Stage:
    return Stage(phrase, phrase, 2048, 1, 1, top, phrase=phrase)


def ban(*top: tuple[int, float]) -> Stage:
    return Stage("bad_words_ids", "banned", 2047, 1, 1, top, kind="ban", phrase="the list of banned words")


FOX = Alternative(4, " fox", 0.25, 0.31, -1.4, -1.2, 3)
FUNNEL = (model(), shift("temperature 0.8"), cut("top-p 0.92", 14))


def test_explanation_of_a_sampled_token() -> None:
    reported = explain_token(token(method="sampled", funnel=FUNNEL))
    assert reported == "Top-p 0.92 kept 14 of 2,048 tokens. “fox” was the third most likely, with 31 %, and was drawn."
    assert [reported[start:stop] for start, stop in reported.figures] == ["14 of 2,048", "31 %"]


def test_explanation_uses_the_rank_after_processing() -> None:
    reported = explain_token(token(method="sampled", funnel=FUNNEL, final_rank=1))
    assert reported.endswith("“fox” was the most likely, with 31 %, and was drawn.")


def test_explanation_of_a_nearly_certain_sampled_token() -> None:
    certain = token(method="sampled", probability=0.9999, rank=1)
    assert explain_token(certain) == "“fox” had 99.99 %: hardly anything else could be drawn."
    alone = token(method="sampled", probability=1.0, funnel=(*FUNNEL, cut("top-k 1", 1)))
    assert explain_token(alone) == (
        "Top-p 0.92 kept 14 of 2,048 tokens; in the end, 1 was left. Only “fox” was left, so nothing had to be drawn."
    )


def test_two_filters_name_both_ends() -> None:
    reported = explain_token(token(method="sampled", funnel=(*FUNNEL, cut("min-p 0.1", 5))))
    assert reported.startswith("Top-p 0.92 kept 14 of 2,048 tokens; in the end, 5 were left.")


def test_explanation_mentions_only_an_effective_temperature() -> None:
    funnel = (model((4, 0.25)), shift("temperature 1.8", (4, 0.11)), cut("top-k 50", 50, (4, 0.12)))
    reported = explain_token(token(method="sampled", probability=0.12, funnel=funnel, rank=1))
    assert reported.startswith("Temperature 1.8 lowered “fox” from 25 % to 11 %. Top-k 50 kept 50 of 2,048 tokens.")
    mild = (model((4, 0.25)), shift("temperature 0.9", (4, 0.28)))
    assert "emperature" not in explain_token(token(method="sampled", funnel=mild, rank=1))


def test_explanation_of_a_greedy_token() -> None:
    first = Alternative(4, " fox", 0.31, 0.31, -1, -1, 1)
    plain = token(rank=1, alternatives=(first, other(" cat", 0.2, 2)))
    assert explain_token(plain) == "“fox” had 31 %, the highest of all, ahead of “cat” with 20 %."
    tie = token(rank=1, alternatives=(first, other(" cat", 0.31, 1)))
    assert explain_token(tie) == "“fox” and “cat” had 31 % each, the highest of all; greedy decoding chose “fox”."
    sure = token(raw_probability=0.9992, probability=0.9992, rank=1)
    assert explain_token(sure) == "“fox” had 99.92 %: the model was nearly certain."


def test_tokens_that_differ_by_a_space_are_distinguished() -> None:
    alike = token(method="greedy", piece=' "', text=' "', alternatives=(other(' "', 0.31, 3), other('"', 0.2, 1)))
    alike = replace(alike, alternatives=(replace(alike.alternatives[0], id=4), alike.alternatives[1]))
    assert explain_token(alike) == '“␣"” had 31 %, the highest of all, ahead of “"” with 20 %.'


def test_explanation_names_the_ban_of_likelier_tokens() -> None:
    wolf, bear = Alternative(8, " wolf", 0.5, 0.0, -1, -9, 1), Alternative(9, " bear", 0.3, 0.0, -1, -9, 2)
    funnel = (model((8, 0.5), (9, 0.3), (4, 0.25)), ban((9, 0.6), (4, 0.5)))
    reported = explain_token(token(rank=2, alternatives=(wolf, FOX), funnel=funnel))
    assert reported.startswith("“wolf” was the model's first choice, but the list of banned words forbids it here.")
    funnel = (funnel[0], ban((4, 0.31)))
    for method in ("greedy", "sampled", "dola", "contrastive"):
        reported = explain_token(token(method=method, alternatives=(wolf, bear, FOX), funnel=funnel))
        assert reported.startswith("The list of banned words forbade the model's two likeliest tokens here.")
    alive = replace(wolf, probability=0.4)
    funnel = (funnel[0], ban((8, 0.5), (4, 0.31)))
    reported = explain_token(token(method="sampled", alternatives=(alive, bear, FOX), funnel=funnel))
    assert reported.startswith("The list of banned words forbade “bear”, which had a higher raw probability.")


def test_explanation_names_the_processor_that_changed_the_order() -> None:
    wolf = Alternative(8, " wolf", 0.5, 0.1, -1, -2, 1)
    funnel = (model((8, 0.5), (4, 0.25)), shift("guidance 2", (8, 0.3), (4, 0.2)),
              shift("the exponential length penalty", (4, 0.31), (8, 0.1)))  # fmt: skip
    reported = explain_token(token(rank=2, alternatives=(wolf, FOX), funnel=funnel))
    assert reported.startswith(
        "“wolf” was the model's first choice, but the exponential length penalty moved “fox” ahead of it."
    )


def test_explanation_of_a_contrastive_token() -> None:
    fox = Alternative(4, " fox", 0.31, 0.31, -1, -1, 3, 0.42, -0.1)
    bird = other(" bird", 0.4, 1, degeneration_penalty=0.91, score=-0.3)
    assert explain_token(token(method="contrastive", alternatives=(bird, fox))) == (
        "“bird” was likelier (40 %), but more similar to the previous text (0.91 versus 0.42), so “fox” with 31 % "
        "had the better balance."
    )
    alike = replace(bird, degeneration_penalty=0.4204)
    assert "(0.4204 versus 0.4200)" in explain_token(token(method="contrastive", alternatives=(alike, fox)))
    weak = replace(bird, probability=0.2)
    assert explain_token(token(method="contrastive", alternatives=(weak, fox))) == (
        "“fox” was the likeliest of 2 candidates (31 %), and with a similarity of 0.42 to the previous text still the "
        "best balanced: its score is −0.10, that of “bird” −0.30."
    )


def test_explanation_of_a_dola_token() -> None:
    choice = LayerChoice(4, ((2, 0.1), (4, 0.2)))
    assert explain_token(token(method="dola", layer_choice=choice, raw_probability=0.22, probability=0.18)) == (
        "Layer 4 differed most from the last one. In contrast with it, “fox” went from 22 % to 18 %, "
        "the highest of all."
    )
    drawn = token(method="dola_sampled", layer_choice=choice, probability=0.25, final_rank=2)
    assert explain_token(drawn).endswith("“fox” kept its 25 %, the second most likely, and was drawn.")


@pytest.mark.parametrize(
    ("origin", "ends"),
    [("target", "and was drawn."), ("draft", "and was accepted at random. The draft had proposed it."),
     ("correction", "and was drawn instead. The draft had proposed another token here, which was rejected."),
     ("bonus", "and was drawn. Every drafted token before it was accepted, so it came as a bonus.")],
)  # fmt: skip
def test_explanation_mentions_the_draft(origin: Origin, ends: str) -> None:
    assert explain_token(token(method="sampled", origin=origin)).endswith(ends)


def test_explanation_of_a_beam_token_uses_raw_probabilities() -> None:
    wolf = Alternative(8, " wolf", 0.5, 0.6, -1, -1, 1)
    assert explain_token(token(method="beam", alternatives=(wolf, FOX))) == (
        "“fox” had 25 % in the raw distribution, less than “wolf” with 50 %; but the search compares whole texts, "
        "and kept one with it."
    )
    assert "the third most likely; but" in explain_token(token(method="beam"))


@pytest.mark.parametrize(("piece", "begins"), [("\n", "A line break had"), ("<|eos|>", "⟨eos⟩ had"), ("a", "“a” had")])
def test_sentences_start_with_a_capital_or_a_quoted_token(piece: str, begins: str) -> None:
    assert explain_token(token(piece=piece)).startswith(begins)


def test_space_before_a_number_is_dropped_between_chinese_letters() -> None:
    assert fill("{name}占 {share}。", name="“a”", share=SentenceNumber("31%")) == "“a”占 31%。"
    reported = fill("{name}占 {share}。", name="“a”", share=SentenceNumber("超过 99.99%"))
    assert reported == "“a”占超过 99.99%。"
    assert [reported[start:stop] for start, stop in reported.figures] == ["超过 99.99%"]


def test_sentences_keep_the_spans_of_their_numbers() -> None:
    inner = fill("{} of it", SentenceNumber("3 %"))
    reported = together(
        capitalize(fill("the {}.", inner)), "", capitalize(fill("and {}{}", "more ", SentenceNumber("4")))
    )
    assert reported == "The 3 % of it. And more 4"
    assert [reported[start:stop] for start, stop in reported.figures] == ["3 %", "4"]
    again = pickle.loads(pickle.dumps(reported))
    assert (again, again.figures) == (reported, reported.figures)
    assert Sentence("x").figures == ()


@pytest.mark.parametrize(
    "settings", [{}, {"do_sample": True}, {"penalty_alpha": 0.6, "top_k": 4}, {"dola_layers": "low"}]
)
def test_every_step_can_be_explained(settings: dict[str, Any]) -> None:
    config = GenerationConfig(max_new_tokens=20, **settings)
    for event in core.run(tiny.shared("llama"), core.Request(tiny.prompt(), config)).events:
        if isinstance(event, TokenChosen):
            reported = explain_token(event)
            assert reported.endswith(".")
            assert 1 <= reported.count(". ") + 1 <= 3


def test_funnel_stages_have_phrase_kind_and_value() -> None:
    settings: dict[str, Any] = {
        "do_sample": True, "temperature": 0.8, "top_k": 20, "typical_p": 0.9, "repetition_penalty": 1.3,
        "no_repeat_ngram_size": 2, "min_new_tokens": 5, "suppress_tokens": [7],
    }  # fmt: skip
    result = core.run(tiny.shared("llama"), core.Request(tiny.prompt(), GenerationConfig(max_new_tokens=2, **settings)))
    event = next(event for event in result.events if isinstance(event, TokenChosen))
    assert [(stage.phrase, stage.kind, stage.value) for stage in event.funnel] == [
        ("the model", "model", None),
        ("the repetition penalty of 1.3", "shift", 1.3),
        ("the ban on repeating any 2 tokens", "ban", 2),
        ("the minimum of 5 new tokens", "ban", 5),
        ("the list of suppressed tokens", "ban", 1),
        ("temperature 0.8", "shift", 0.8),
        ("top-k 20", "cut", 20),
        ("typical sampling 0.9", "cut", 0.9),
    ]


def test_explanation_of_a_scored_token_calls_it_given() -> None:
    first = other(" dog", 0.4, 1)
    reported = explain_token(token(method="scored", probability=0.25, alternatives=(first,), funnel=(model(),)))
    assert reported == (
        "“fox” is part of the given text; for the model it was the third most likely, with 25 %, "
        "and “dog” the first choice, with 40 %."
    )
    assert [reported[start:stop] for start, stop in reported.figures] == ["25 %", "40 %"]
    assert explain_token(token(method="scored")) == (
        "“fox” is part of the given text; for the model it was the third most likely, with 25 %."
    )
    assert explain_token(token(method="scored", rank=1)) == (
        "“fox” is part of the given text, and the model's first choice here, with 25 %."
    )
