"""The corpus: documents for the decoders, input and target pairs for the encoder-decoder.

Every document is written from its own generator, seeded by corpus, split and index, so any part of
the corpus can be written again without the rest. Nothing of the held-out split is in training.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from chat import BOS, EOS, turn
from french import write_pair
from lexicon import language, table
from questions import ask_about
from rambles import write_ramble
from stories import Story, write_story

Segment = tuple[str, float]  # text and the weight of its tokens in the loss
QUESTION_WEIGHT, ANSWER_WEIGHT = 0.05, 3.0  # questions are unpredictable, answers follow from the story
HELD_OUT_SHARE = 20


@dataclass(frozen=True)
class Document:
    """A training document: what it is, and its weighted text."""

    sort: str
    segments: tuple[Segment, ...]

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.segments)


def is_held_out(text: str) -> bool:
    """Return whether this story or sentence belongs to the held-out split: a checksum of the text decides."""
    return zlib.crc32(text.encode()) % HELD_OUT_SHARE == 0


def draw_story(rng: random.Random, held_out: bool, kind: str | None = None) -> Story:
    """A story of the wanted split."""
    while True:
        story = write_story(rng, kind)
        if is_held_out(story.text) == held_out:
            return story


def _answers(pairs: list[tuple[str, str]]) -> list[Segment]:
    segments: list[Segment] = []
    for ask, reply in pairs:
        segments += [(turn("user", ask), QUESTION_WEIGHT), (turn("assistant", reply), ANSWER_WEIGHT)]
    return segments


def reading(rng: random.Random, held_out: bool) -> Document:
    """The user brings a story and asks about it."""
    story = draw_story(rng, held_out)
    pairs = ask_about(rng, story, rng.randint(5, 9))
    if rng.random() < 0.4:
        pairs.insert(rng.randrange(len(pairs)), (rng.choice(table("questions")["summary_requests"]), story.summary))
    (first, reply), *rest = pairs
    gap = rng.choice(["\n", "\n\n", " "])
    opening = [
        (f"{BOS}<|user|>", QUESTION_WEIGHT),
        (story.text, 1.0),
        (f"{gap}{first}<|end|>", QUESTION_WEIGHT),
        (turn("assistant", reply), ANSWER_WEIGHT),
    ]
    return Document("reading", (*opening, *_answers(rest)))


def quizzing(rng: random.Random, held_out: bool) -> Document:
    """The user brings a story and asks nearly everything about it."""
    story = draw_story(rng, held_out)
    (first, reply), *rest = ask_about(rng, story, 14)
    opening = [(f"{BOS}<|user|>", QUESTION_WEIGHT), (story.text, 1.0), (f"\n{first}<|end|>", QUESTION_WEIGHT)]
    return Document("quizzing", (*opening, (turn("assistant", reply), ANSWER_WEIGHT), *_answers(rest)))


def telling(rng: random.Random, held_out: bool) -> Document:
    """The user asks for a story, then about it."""
    bank = table("questions")
    request = rng.choice(bank["story_requests"])
    story = draw_story(rng, held_out)
    system = [(turn("system", bank["system"]), QUESTION_WEIGHT)] * (rng.random() < 0.3)
    prompt = (
        turn("user", request.format_map(story.facts).replace(" a owl", " an owl").replace(" a otter", " an otter")),
        QUESTION_WEIGHT,
    )
    reply = (turn("assistant", story.text), 1.0)
    return Document(
        "telling", ((BOS, QUESTION_WEIGHT), *system, prompt, reply, *_answers(ask_about(rng, story, rng.randint(2, 5))))
    )


def greeting(rng: random.Random, held_out: bool) -> Document:
    """A little small talk."""
    pairs = [tuple(pair) for pair in rng.sample(table("questions")["small_talk"], 3)]
    return Document("greeting", ((BOS, QUESTION_WEIGHT), *_answers([(ask, reply) for ask, reply in pairs])))


def plain(rng: random.Random, held_out: bool) -> Document:
    """A story alone."""
    return Document("story", ((BOS, 0.0), (draw_story(rng, held_out).text, 1.0), (EOS, 1.0)))


def several(rng: random.Random, held_out: bool) -> Document:
    """A few stories in a row, so that long contexts are not strange to the model."""
    stories = [draw_story(rng, held_out).text + EOS for _ in range(rng.randint(3, 5))]
    return Document("stories", tuple((BOS + text, 1.0) for text in stories))


def ramble(rng: random.Random, held_out: bool) -> Document:
    """Sentences without memory; without an end, as rambles have none."""
    return Document("ramble", ((BOS, 0.0), (write_ramble(rng, rng.randint(6, 24)), 1.0)))


Mix = Mapping[Callable[[random.Random, bool], Document], int]
"""How often each kind of document comes."""
MIX: Mix = {plain: 34, several: 2, ramble: 10, reading: 42, telling: 10, greeting: 2}
TASKS = {"translate": 64, "summarize": 27, "question": 9}
FRENCH_TASKS = {"translate": 92, "summarize": 6, "question": 2}
EVEN_TASKS = {"translate": 40, "summarize": 42, "question": 18}  # what the tokenizer learns from
READING_MIX: Mix = {plain: 24, several: 1, ramble: 10, reading: 60, telling: 3, greeting: 2}
QUIZ_MIX: Mix = {plain: 20, several: 1, ramble: 10, quizzing: 60, telling: 5, greeting: 2}
SECOND_MIX: Mix = {plain: 60, several: 2, ramble: 12, reading: 14, telling: 10, greeting: 2}


def document(seed: int, index: int, held_out: bool = False, mix: Mix | None = None) -> Document:
    """Document number ``index`` of the corpus of this seed."""
    rng = random.Random(f"{seed} {'held out' if held_out else 'training'} {index}")
    chosen = mix or MIX
    build = rng.choices(list(chosen), weights=list(chosen.values()))[0]
    written: Document = build(rng, held_out)
    return written


def draw_translation(rng: random.Random, held_out: bool) -> tuple[str, str]:
    """An English sentence of the wanted split with its French."""
    while True:
        english, french = write_pair(rng)
        if is_held_out(english) == held_out:
            return english, french


def task(seed: int, index: int, held_out: bool = False, mix: dict[str, int] = TASKS) -> tuple[str, str, str]:
    """Task number ``index`` for the encoder-decoder: its sort, the input, the target."""
    rng = random.Random(f"tasks {seed} {'held out' if held_out else 'training'} {index}")
    sort = rng.choices(list(mix), weights=list(mix.values()))[0]
    if sort == "translate":
        english, french = draw_translation(rng, held_out)
        return sort, f"translate English to French: {english}", french
    story = draw_story(rng, held_out)
    if sort == "summarize":
        return sort, f"summarize: {story.text}", story.summary
    ask, reply = ask_about(rng, story, 1)[0]
    return sort, f"question: {ask} story: {story.text}", reply


def tokenizer_texts(count: int) -> Iterator[str]:
    """Texts from which the tokenizer learns its merges."""
    for index in range(count):
        yield document(0, index).text
        if language() == "english":  # the encoder-decoder reads English
            yield from task(0, index, mix=EVEN_TASKS)[1:]
