"""Held-out figures: loss, questions answered, translations and summaries exact, names kept."""

from __future__ import annotations

import random
import re
from typing import Any

import torch
from batches import encode, padded
from chat import render
from corpus import document, draw_story, draw_translation
from lexicon import PRONOUNS, language, table
from questions import ask_about
from torch.nn import functional

HELD_OUT_SEED = 99
ROWS = 16
SENTENCES = 800  # that are translated for the figures
STORY_BEGINNINGS = {"english": "Once upon a time, there was a little", "chinese": "从前，有一只小"}


@torch.no_grad()
def held_out_loss(model: Any, tokenizer: Any, count: int = 120) -> float:
    """Return the mean cross entropy of a token in nats over held-out stories."""
    total, tokens, index, found = 0.0, 0, 0, 0
    while found < count:
        doc = document(HELD_OUT_SEED, index, held_out=True)
        index += 1
        if doc.sort != "story":
            continue
        found += 1
        ids = torch.tensor([encode(tokenizer, doc)[0]])
        logits = model(ids).logits[0, :-1]
        total += functional.cross_entropy(logits, ids[0, 1:], reduction="sum").item()
        tokens += ids.shape[1] - 1
    return total / tokens


@torch.no_grad()
def greedy(model: Any, tokenizer: Any, prompts: list[list[int]], new_tokens: int) -> list[str]:
    """The greedy continuations of many prompts, special tokens removed."""
    texts: list[str] = []
    for first in range(0, len(prompts), ROWS):
        rows = prompts[first : first + ROWS]
        if model.config.is_encoder_decoder:
            ids = padded(rows, tokenizer.pad_token_id, torch.long)
        else:
            ids = padded([row[::-1] for row in rows], tokenizer.pad_token_id, torch.long).flip(1)
        mask = (ids != tokenizer.pad_token_id).long()
        out = model.generate(ids, attention_mask=mask, do_sample=False, max_new_tokens=new_tokens)
        new = out if model.config.is_encoder_decoder else out[:, ids.shape[1] :]
        texts += [text.strip() for text in tokenizer.batch_decode(new, skip_special_tokens=True)]
    return texts


def wrong(questions: list[str], wanted: list[str], got: list[str]) -> list[tuple[str, str, str]]:
    """What was not answered exactly: question, wanted answer, given answer."""
    return [(ask, want, have) for ask, want, have in zip(questions, wanted, got, strict=True) if want != have]


def questions(model: Any, tokenizer: Any, count: int = 300) -> list[tuple[str, str, str]]:
    """Answer held-out questions, three a story, each in a conversation of its own; return the wrong answers."""
    questions, wanted, prompts = [], [], []
    for index in range(count // 3):
        rng = random.Random(f"{HELD_OUT_SEED} questions {index}")
        story = draw_story(rng, held_out=True)
        for ask, reply in ask_about(rng, story, 3):
            messages = [{"role": "user", "content": f"{story.text}\n{ask}"}]
            prompts.append(tokenizer.encode(render(messages, add_generation_prompt=True), add_special_tokens=False))
            questions.append(ask)
            wanted.append(reply)
    return wrong(questions, wanted, greedy(model, tokenizer, prompts, 32))


def translations(model: Any, tokenizer: Any, count: int = SENTENCES) -> list[tuple[str, str, str]]:
    """Translate held-out sentences; return the wrong translations."""
    pairs = [
        draw_translation(random.Random(f"{HELD_OUT_SEED} french {index}"), held_out=True) for index in range(count)
    ]
    prompts = [tokenizer.encode(f"translate English to French: {english}") for english, _ in pairs]
    return wrong(
        [english for english, _ in pairs], [french for _, french in pairs], greedy(model, tokenizer, prompts, 40)
    )


def summaries(model: Any, tokenizer: Any, count: int = 200) -> list[tuple[str, str, str]]:
    """Sum up held-out stories; return the wrong summaries."""
    stories = [draw_story(random.Random(f"{HELD_OUT_SEED} summaries {index}"), held_out=True) for index in range(count)]
    if model.config.is_encoder_decoder:
        prompts = [tokenizer.encode(f"summarize: {story.text}") for story in stories]
    else:
        request = table("questions")["summary_requests"][0]
        chats = [[{"role": "user", "content": f"{story.text}\n{request}"}] for story in stories]
        prompts = [tokenizer.encode(render(one, add_generation_prompt=True), add_special_tokens=False) for one in chats]
    got = greedy(model, tokenizer, prompts, 48)
    return wrong([story.text for story in stories], [story.summary for story in stories], got)


def strangers(text: str) -> list[str]:
    """Names in a generated story beyond the two that a story has, in order of appearance.

    The first two names are those that follow ``named`` or ``called``; anyone else is a stranger.
    """
    words = table("words")
    known = set(words["girls"] + words["boys"])
    names = list(dict.fromkeys(word for word in words_of(text) if word in known))
    return names[2:]


def words_of(text: str) -> list[str]:
    """The words of a text; in Chinese, which has no spaces, only the names and pronouns."""
    if language() == "chinese":
        words = table("words")
        found = re.findall("|".join(["他们", "她们", "她", "他", *words["girls"], *words["boys"]]), text)
        return [word for word in found if not word.endswith("们")]
    return [word.strip('.,!?"\n') for word in text.replace("\n", " ").split(" ")]


def repeated_share(ids: list[int], n: int = 4) -> float:
    """The share of n-grams that occurred before in the text."""
    grams = [tuple(ids[start : start + n]) for start in range(len(ids) - n + 1)]
    return 1 - len(set(grams)) / len(grams) if grams else 0.0


def slips(text: str) -> list[str]:
    """Return pronouns that fit no character: in the first paragraph the hero, later either of the two."""
    words = table("words")
    genders = dict.fromkeys(words["girls"], "girl") | dict.fromkeys(words["boys"], "boy")
    fits = {pronoun: gender for gender, pronouns in PRONOUNS[language()].items() for pronoun in pronouns}
    present: set[str] = set()
    first, found = True, []
    for paragraph in text.split("\n"):
        seen = words_of(paragraph)
        present |= {genders[word] for word in seen if word in genders and not (first and present)}
        wanted = {fits[word.lower()] for word in seen if word.lower() in fits}
        found += [word for word in seen if fits.get(word.lower()) in wanted - present]
        first = False
    return found


@torch.no_grad()
def kept_names(model: Any, tokenizer: Any, count: int = 50, new_tokens: int = 200) -> tuple[int, list[str]]:
    """Write stories at temperature 0.8; how many keep their two names and their pronouns, and all of them."""
    torch.manual_seed(HELD_OUT_SEED)
    ids = torch.tensor([tokenizer.encode(STORY_BEGINNINGS[language()])] * count)
    out = model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=True, temperature=0.8, top_k=0, max_new_tokens=new_tokens
    )
    texts = tokenizer.batch_decode(out, skip_special_tokens=True)
    return sum(not strangers(text) and not slips(text) for text in texts), texts


@torch.no_grad()
def agreement(draft: Any, target: Any, tokenizer: Any, count: int = 40) -> tuple[float, float]:
    """How well a draft model foresees its target on held-out stories.

    Returns the share of tokens whose greedy choice is the same, and the mean chance that speculative
    sampling accepts a drafted token (the overlap of the two distributions).
    """
    same, overlap, tokens = 0.0, 0.0, 0
    for index in range(count):
        story = draw_story(random.Random(f"{HELD_OUT_SEED} agreement {index}"), held_out=True)
        ids = torch.tensor([tokenizer.encode(story.text)])
        p, q = target(ids).logits[0].softmax(-1), draft(ids).logits[0].softmax(-1)
        same += (p.argmax(-1) == q.argmax(-1)).sum().item()
        overlap += torch.minimum(p, q).sum().item()
        tokens += ids.shape[1]
    return same / tokens, overlap / tokens
