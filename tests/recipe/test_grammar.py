"""The story grammar: equal seeds write equal stories, characters keep name and gender, and answers are in the text."""

import itertools
import random
import re

import corpus
import examine
import pytest
from lexicon import article, table
from questions import absent_fields, answerable, ask_about, unanswerable
from rambles import write_ramble
from stories import write_story

STORIES = [write_story(random.Random(seed)) for seed in range(300)]


def test_same_seed_writes_the_same_story() -> None:
    assert write_story(random.Random(5)) == write_story(random.Random(5))
    assert write_story(random.Random(5)).text != write_story(random.Random(6)).text
    assert corpus.document(3, 7) == corpus.document(3, 7)


def test_stories_use_every_plot() -> None:
    assert {story.plot for story in STORIES} == {plot["id"] for plot in table("plots")}


def test_stories_keep_names_and_pronouns() -> None:
    for story in STORIES:
        assert examine.strangers(story.text) == []
        assert examine.slips(story.text) == []
        assert story.hero.name in story.text
        assert story.helper.name in story.text


def test_checks_find_unknown_names_and_wrong_pronouns() -> None:
    right = "There was a little fox named Fern. She lived by the river.\nThen an owl named Otto came by. He sang."
    assert examine.slips(right) == []
    assert examine.slips(right.replace("She", "He")) == ["He"]
    assert examine.slips(right.replace("Otto", "Lily")) == ["He"]
    assert examine.strangers(right + " Max sang, too.") == ["Max"]


def test_articles_fit_the_next_word() -> None:
    assert article("owl") == "an owl"
    assert article("fox") == "a fox"
    texts = [corpus.document(1, index).text for index in range(300)]
    assert not [text for text in texts if re.search(r"\ba [aeiou]", text)]


def test_answers_contain_only_facts_of_the_story() -> None:
    for story in STORIES[:100]:
        absent = absent_fields(random.Random(0), story)
        for ask, reply in answerable(story, absent):
            assert "{" not in ask + reply
            for name in set(table("words")["girls"] + table("words")["boys"]) & set(re.findall(r"\w+", reply)):
                assert name in (story.hero.name, story.helper.name)
            color = re.search(rf"\b({'|'.join(table('words')['colors'])})\b", reply)
            assert color is None or color[0] in story.text
        assert {reply for _, reply in unanswerable(story, absent)} == {"I do not know."}


def test_unanswerable_facts_are_absent_from_the_story() -> None:
    for story in STORIES[:100]:
        absent = absent_fields(random.Random(1), story)
        assert not re.search(rf"\b{absent['X']}\b", story.text)
        assert absent["obj2"] not in story.text
        if not story.has_hobby:
            assert "loved to" not in story.text.split("\n")[0].replace("loved to be outside", "")


def test_questions_differ_and_some_have_no_answer() -> None:
    pairs = [pair for index, story in enumerate(STORIES) for pair in ask_about(random.Random(index), story, 6)]
    unknown = sum(reply == "I do not know." for _, reply in pairs)
    assert 0.1 < unknown / len(pairs) < 0.4
    assert len(dict(ask_about(random.Random(0), STORIES[0], 9))) == 9


def test_summary_is_one_line_that_names_the_hero() -> None:
    for story in STORIES:
        assert "\n" not in story.summary
        assert "{" not in story.summary
        assert story.hero.name in story.summary


def test_ramble_repeats_30_to_50_percent_of_sentences() -> None:
    sentences = re.findall(r"[^.]+\.", write_ramble(random.Random(2), 400))
    same = sum(one == other for one, other in itertools.pairwise(sentences))
    assert 0.3 < same / (len(sentences) - 1) < 0.5


@pytest.mark.parametrize("sort", ["story", "pair"])
def test_training_texts_exclude_held_out_ones(sort: str) -> None:
    if sort == "story":
        held_out = {corpus.draw_story(random.Random(seed), held_out=True).text for seed in range(60)}
        trained = {corpus.draw_story(random.Random(seed), held_out=False).text for seed in range(1000)}
    else:
        held_out = {corpus.draw_translation(random.Random(seed), held_out=True)[0] for seed in range(100)}
        trained = {corpus.draw_translation(random.Random(seed), held_out=False)[0] for seed in range(5000)}
    assert not held_out & trained
    assert not any(corpus.is_held_out(text) for text in trained)
