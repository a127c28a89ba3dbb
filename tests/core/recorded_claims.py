"""Record the claims of explanations and their numbers, at every level of detail and in every language."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import NamedTuple

import pytest

from decodescope.core.explain import beams, choice, draft_rounds, settings, tokens
from decodescope.core.explain.sentence import Sentence, SentenceTemplate
from decodescope.resources import depth, language

LEVELS_AND_LANGUAGES = [(each, code) for code in language.LANGUAGES for each in depth.DEPTHS]


class RecordedClaim(NamedTuple):
    """One explanation as it was worded."""

    name: str
    """Module and name: `tokens._AHEAD`."""
    values: Mapping[str, str]
    """Values of its placeholders."""
    text: str


def _named(module: ModuleType) -> Iterator[tuple[SentenceTemplate, str]]:
    for name, value in vars(module).items():
        if isinstance(value, SentenceTemplate):
            yield value, f"{module.__name__.rsplit('.', 1)[1]}.{name}"
        elif isinstance(value, dict):
            for key, each in value.items():
                if isinstance(each, SentenceTemplate):
                    yield each, f"{module.__name__.rsplit('.', 1)[1]}.{name}.{key}"


NAMES: dict[int, str] = {}


def register_claims(*modules: ModuleType) -> None:
    """Register the sentence templates of further modules by name."""
    for module in modules:
        for saying, name in _named(module):
            NAMES.setdefault(id(saying), name)


register_claims(tokens, settings, choice, choice, choice, beams, draft_rounds, settings)


@contextmanager
def explanations_at(level: str, code: str) -> Iterator[None]:
    """Use this level of detail and language within a `with` block."""
    language.set_language(code)
    try:
        with depth.depth_context(level):
            yield
    finally:
        language.set_language(language.ENGLISH)


class TemplateRecorder:
    """Records every sentence template that is used."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._heard: list[RecordedClaim] = []
        usual = SentenceTemplate.words

        def words(saying: SentenceTemplate, **values: str) -> Sentence:
            reported = usual(saying, **values)
            used = set(re.findall(r"{(\w+)}", depth.pick(*saying)))
            self._heard.append(RecordedClaim(NAMES[id(saying)], {name: values[name] for name in used}, reported))
            return reported

        monkeypatch.setattr(SentenceTemplate, "words", words)

    def claims(self, explain: Callable[[], str]) -> tuple[str, list[RecordedClaim]]:
        """Return the explanation and its claims, which make up the whole text."""
        self._heard.clear()
        reported = explain()
        rest = reported.casefold()
        for claim in sorted(self._heard, key=lambda claim: -len(claim.text)):
            text = claim.text.casefold()
            assert text in reported.casefold(), (claim, reported)
            rest = rest.replace(text, "", 1)
        assert not rest.strip(), (rest, reported)
        return reported, list(self._heard)


def is_close_to(said: str, value: float) -> bool:
    """Return whether a formatted number equals `value` after rounding: `about 3 in 10`, `31 %`, `over 99.99 %`,
    `0.3142`.
    """
    text = said.replace(",", "").replace("−", "-")
    numbers = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", text)]
    if not numbers:
        return value == 0 if text in ("none", "毫无机会", "零") else value == float(text.replace("∞", "inf"))
    if "%" in text:
        return _percent(text, numbers[0], value * 100)
    if len(numbers) == 2:
        return _of(text, numbers, value)
    return abs(value - numbers[0]) <= _half(re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", text)[0]) + 1e-9


def _percent(text: str, number: float, value: float) -> bool:
    if text.startswith(("under", "不足")):
        return 0 < value < number
    if text.startswith(("over", "超过")):
        return number < value < 100
    shown = _half(text.replace("%", " ").split()[0])
    return abs(value - number) <= shown + 1e-6


def _of(text: str, numbers: list[float], value: float) -> bool:
    """`about 3 in 10`; “每 10 次约 3 次”."""
    count, base = sorted(numbers)
    if any(word in text for word in ("about", "大约", "次约")):
        return abs(value * base - count) <= 0.5 + 1e-9
    return value < count / base if "less" in text or "不到" in text else value >= count / base


def _half(number: str) -> float:
    """Return half a unit of the last digit; whole numbers of two digits and more are exact."""
    mantissa, _, exponent = number.partition("e")
    digits = len(mantissa.partition(".")[2])
    return 0.5 * 10.0 ** (int(exponent or 0) - digits)
