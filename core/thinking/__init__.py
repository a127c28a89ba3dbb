"""Thinking: the part of an answer in which a model reasons before it answers, between marks of its own.

`marks` lists known marks and derives those of a model, `recognition` finds the thinking of an answer. Chat, token view,
page, recordings and captured runs all use `find_thinking`.
"""

from decodescope.core.thinking.marks import KNOWN_MARKS, ThinkingMark, derive_marks
from decodescope.core.thinking.recognition import (
    NO_THINKING,
    AnswerThinking,
    ThinkingStream,
    find_thinking,
    is_thinking_open,
    marks_of,
    split_answer,
    split_text,
    token_part,
)

__all__ = [
    "KNOWN_MARKS",
    "NO_THINKING",
    "AnswerThinking",
    "ThinkingMark",
    "ThinkingStream",
    "derive_marks",
    "find_thinking",
    "is_thinking_open",
    "marks_of",
    "split_answer",
    "split_text",
    "token_part",
]
