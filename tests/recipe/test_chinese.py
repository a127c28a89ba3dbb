"""The Chinese story grammar, held against what the English one keeps."""

import random
import re
from collections.abc import Iterator

import bpe
import corpus
import examine
import pytest
from lexicon import choose_language, language, table
from questions import absent_fields, answerable, ask_about
from stories import Story, write_story

HALF_WIDTH = re.compile(r"[ -~]")


@pytest.fixture(autouse=True)
def chinese() -> Iterator[None]:
    choose_language("chinese")
    yield
    choose_language("english")


@pytest.fixture
def stories() -> list[Story]:
    return [write_story(random.Random(seed)) for seed in range(300)]


def test_unknown_language_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="klingon"):
        choose_language("klingon")
    assert language() == "chinese"


def test_chinese_stories_use_every_plot_and_only_full_width_signs(stories: list[Story]) -> None:
    assert {story.plot for story in stories} == {plot["id"] for plot in table("plots")}
    for story in stories:
        written = [story.summary, *story.text.split("\n")]
        written += [text for pair in answerable(story, absent_fields(random.Random(0), story)) for text in pair]
        assert not [text for text in written if HALF_WIDTH.search(text)]
        assert all(text.endswith(("。", "？", "”")) for text in written)


def test_chinese_stories_keep_names_and_pronouns(stories: list[Story]) -> None:
    for story in stories:
        assert examine.strangers(story.text) == []
        assert examine.slips(story.text) == []
    right = "从前，有一只小猫，名叫莉莉。她住在湖边。\n这时，一只名叫阿布的狗走了过来。他们一起玩。"
    assert examine.slips(right) == []
    assert examine.slips(right.replace("她", "他")) == ["他"]
    assert examine.strangers(right + "豆豆也来了。") == ["豆豆"]


def test_every_chinese_thing_has_its_measure_word() -> None:
    words = table("words")
    counted = {
        word
        for plot in table("plots")
        for field, source in plot["draw"].items()
        if f"{{q_{field}}}" in str(plot)
        for word in words[source]
    }
    assert counted <= set(words["measures"])


def test_chinese_answers_contain_only_facts_of_the_story(stories: list[Story]) -> None:
    names = set(table("words")["girls"] + table("words")["boys"])
    for story in stories[:100]:
        for _, reply in answerable(story, absent_fields(random.Random(0), story)):
            assert {name for name in names if name in reply} <= {story.hero.name, story.helper.name}
            colors = [color for color in table("words")["colors"] if color in reply]
            assert all(color in story.text for color in colors)
    pairs = [pair for index, story in enumerate(stories) for pair in ask_about(random.Random(index), story, 6)]
    assert 0.1 < sum(reply == "我不知道。" for _, reply in pairs) / len(pairs) < 0.4


def test_chinese_tokens_are_short_and_give_back_the_text(stories: list[Story]) -> None:
    tokenizer = bpe.for_decoder()
    assert len(tokenizer) == bpe.VOCABULARY
    for story in stories[:20]:
        ids = tokenizer.encode(story.text, add_special_tokens=False)
        assert tokenizer.decode(ids) == story.text
        assert max(len(tokenizer.decode([one])) for one in ids) <= 4
        assert len(ids) < len(story.text)
    assert corpus.document(0, 5).text.endswith("<|eos|>")
