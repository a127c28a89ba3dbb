"""The prompts of claims: beginnings that story models and chat models continue, and questions. Imports no torch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from decodescope.core.common.claim import PromptSet


class ClaimPrompt(NamedTuple):
    """A prompt, with its right answers if it is a question."""

    text: str
    answers: tuple[str, ...] = ()


_STORIES = (
    "Once upon a time, there was a little girl named Anna. She lived",
    "One day, a small dog found a red ball in the garden. The dog",
    "Tom and his sister went to the river. They saw",
    "The old man had a blue boat. Every morning he",
    "It was raining, and the cat did not want to go outside. So the cat",
    "In a quiet village, a baker made the best bread. One morning",
    "Lily was afraid of the dark. Her mother said",
    "A young bird wanted to fly, but its wings were too small. The bird",
    "Ben lost his favorite toy in the forest. He looked",
    "On a cold winter day, the children built a snowman. Then",
    "The king had a garden with golden apples. One night",
    "Sara and Max wanted to bake a cake for their grandmother. First",
    "There was a mouse who lived under the kitchen floor. The mouse",
    "The teacher gave the class a big box. Inside the box",
    "A farmer had a horse that could not sleep. The farmer",
    "Mia found a small key under a stone. She wondered",
    "The moon was bright, and an owl sat in the tree. The owl",
    "Jack planted a seed next to the house. After a few days",
    "Two friends shared one umbrella. When the wind came",
    "The little train was slow, but it never gave up. One day",
)  # fmt: skip
_CHINESE_STORIES = (
    "从前，有一个小女孩，她住在",
    "有一天，一只小狗在花园里找到了一个红色的球。小狗",
    "小明和妹妹来到河边，他们看见",
    "老爷爷有一条蓝色的小船，每天早上他",
    "外面下着雨，小猫不想出门。于是小猫",
    "在一个安静的村子里，有一位面包师。一天早上",
    "小丽害怕黑暗。妈妈说",
    "一只小鸟想飞，可是它的翅膀太小了。小鸟",
    "小刚在森林里丢了最喜欢的玩具。他",
    "寒冷的冬天，孩子们堆了一个雪人。然后",
    "国王有一个花园，里面长着金苹果。一天夜里",
    "姐姐和弟弟想给奶奶做一个蛋糕。首先",
    "厨房的地板下面住着一只老鼠。老鼠",
    "老师给同学们一个大箱子。箱子里",
    "农夫有一匹睡不着觉的马。农夫",
    "小美在石头下面发现了一把小钥匙。她",
    "月亮很亮，一只猫头鹰坐在树上。猫头鹰",
    "小强在房子旁边种下一颗种子。过了几天",
    "两个朋友共用一把雨伞。风来的时候",
    "小火车跑得很慢，但是它从不放弃。有一天",
)
_FACTS = (
    ClaimPrompt("Question: What is the capital of France? Answer:", ("Paris",)),
    ClaimPrompt("Question: How many legs does a spider have? Answer:", ("eight", "8")),
    ClaimPrompt("Question: What color is the sky on a clear day? Answer:", ("blue",)),
    ClaimPrompt("Question: How many days are in a week? Answer:", ("seven", "7")),
    ClaimPrompt("Question: What is two plus three? Answer:", ("five", "5")),
    ClaimPrompt("Question: What do bees make? Answer:", ("honey",)),
    ClaimPrompt("Question: Which planet do we live on? Answer:", ("Earth",)),
    ClaimPrompt("Question: What is frozen water called? Answer:", ("ice",)),
    ClaimPrompt("Question: Which animal says meow? Answer:", ("cat", "a cat")),
    ClaimPrompt("Question: What is the opposite of hot? Answer:", ("cold",)),
    ClaimPrompt("Question: How many months are in a year? Answer:", ("twelve", "12")),
    ClaimPrompt("Question: What is the capital of Italy? Answer:", ("Rome",)),
    ClaimPrompt("Question: Which star warms the Earth? Answer:", ("sun", "the sun")),
    ClaimPrompt("Question: What is ten minus four? Answer:", ("six", "6")),
    ClaimPrompt("Question: What color is a ripe banana? Answer:", ("yellow",)),
    ClaimPrompt("Question: What is the capital of Japan? Answer:", ("Tokyo",)),
)


def claim_prompts(kind: PromptSet, count_tokens: Callable[[str], int] | None = None) -> tuple[ClaimPrompt, ...]:
    """Return the prompts of a set. `count_tokens` is the model's tokenizer: a model that needs fewer tokens for a
    Chinese sentence than for an English one of the same meaning gets Chinese stories.
    """
    if kind == "facts":
        return _FACTS
    stories: Sequence[str] = _STORIES
    if count_tokens is not None and count_tokens("".join(_CHINESE_STORIES)) < count_tokens(" ".join(_STORIES)) / 1.5:
        stories = _CHINESE_STORIES
    if kind == "repetitive":
        return tuple(ClaimPrompt(_repeated(first, second)) for first, second in itertools.pairwise(stories))
    return tuple(ClaimPrompt(text) for text in stories)


def _repeated(first: str, second: str) -> str:
    """Return two sentences three times, the last time cut in the middle, so that the text goes on as before."""
    is_spaced = first.isascii()
    passage = " ".join((first + ".", second + ".")) if is_spaced else f"{first}。{second}。"
    half = passage[: len(passage) // 3]
    half = half.rpartition(" ")[0] if is_spaced else half
    return (" " if is_spaced else "").join((passage, passage, half))
