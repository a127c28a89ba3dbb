"""Gumbel noise computed from (seed, position, token) alone, in any order and for the whole vocabulary.

Choosing argmax(log p + g) with independent standard Gumbel numbers g draws from p (Gumbel 1954; Maddison, Tarlow &
Minka 2014). Because g depends neither on the scores nor on earlier draws, the same noise can be applied to other
scores: what would have been chosen under other settings (Oberst & Sontag 2019, arXiv 1905.05824; arXiv 2409.17027).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from decodescope.core.models.text import TokenSpellings

FloatArray: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]

_WORD = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_BITS = 52
"""Random bits of a number: with one more bit, (k + ½) · 2⁻ᵇ would round to 1, whose noise is infinite."""
_MAX_DRAWS = 1 << 31
"""Draws of one position; the upper half of the counter word belongs to the random numbers of stages."""


def philox(counter: Sequence[Words | int], seed: int) -> tuple[Words, Words, Words, Words]:
    """Return the four 32-bit words of Philox4x32-10 for 32-bit counter words, broadcast against each other, and a
    64-bit key (Salmon, Moraes, Dror & Shaw 2011, Parallel Random Numbers: As Easy as 1, 2, 3).
    """
    mask, shift = np.uint64(_WORD), np.uint64(32)
    first, second, third, fourth = np.broadcast_arrays(*[np.asarray(word, np.uint64) for word in counter])
    keys = [seed & _WORD, seed >> 32 & _WORD]
    for _ in range(_ROUNDS):
        left, right = first * np.uint64(_MULTIPLIERS[0]), third * np.uint64(_MULTIPLIERS[1])
        first, second, third, fourth = (
            (right >> shift) ^ second ^ np.uint64(keys[0]), right & mask,
            (left >> shift) ^ fourth ^ np.uint64(keys[1]), left & mask,
        )  # fmt: skip
        keys = [key + step & _WORD for key, step in zip(keys, _KEY_STEPS, strict=True)]
    return first, second, third, fourth


class SpelledModel(Protocol):
    """The attributes of a model that determine the keys of its tokens."""

    @property
    def vocabulary(self) -> int: ...

    @property
    def tokenizer(self) -> object: ...

    @property
    def token_bytes(self) -> Sequence[bytes | None] | None: ...

    @property
    def pieces(self) -> TokenSpellings: ...

    @property
    def strategy_data(self) -> dict[str, Any]: ...


def token_keys(model: SpelledModel) -> Words:
    """Return a 64-bit key for each token of a model, [V]; computed once.

    The key of a token is a hash of the bytes that it writes, so that models with other vocabularies share the noise of
    the tokens they have in common. Special tokens are keyed by their names. Several tokens of the same bytes are
    numbered: with equal noise, the likelier one would always win. Without a tokenizer, ids are keys.
    """
    known: Words | None = model.strategy_data.get("token_keys")
    if known is None:
        known = model.strategy_data["token_keys"] = _compute_keys(model)
    return known


def _compute_keys(model: SpelledModel) -> Words:
    spelled = model.token_bytes if model.tokenizer is not None else None
    if spelled is None:
        return np.arange(model.vocabulary, dtype=np.uint64)
    counts: dict[tuple[bytes, bytes], int] = {}
    keys = np.empty(model.vocabulary, dtype=np.uint64)
    for token in range(model.vocabulary):
        data = spelled[token]
        kind = b"name" if data is None else b"text"
        content = model.pieces[token].encode("utf-8", "surrogatepass") if data is None else data
        number = counts[kind, content] = counts.get((kind, content), -1) + 1
        digest = hashlib.blake2b(content, digest_size=8, person=kind, salt=number.to_bytes(8, "little")).digest()
        keys[token] = int.from_bytes(digest, "little")
    return keys


class KeyedNoise:
    """The noise of one seed. Position 0 is the first token of the answer."""

    def __init__(self, seed: int, keys: Words) -> None:
        """Use a seed, of which 64 bits count, and the keys [V] of the tokens (`token_keys`)."""
        self._seed, self._keys = seed & (1 << 64) - 1, keys
        self._low, self._high = keys & np.uint64(_WORD), keys >> np.uint64(32)

    def gumbel(self, position: int, draw: int = 0) -> FloatArray:
        """Return standard Gumbel noise [V] of a position, in float64; `draw` numbers independent copies of it."""
        words = philox((self._low, self._high, position & _WORD, draw % _MAX_DRAWS), self._seed)
        noise: FloatArray = -np.log(-np.log1p(-_unit_numbers(words)))
        return noise

    def after_text(self, text: bytes, occurrence: int) -> KeyedNoise:
        """Return the noise of the same seed that belongs to a text before the token, and to how often that text has
        occurred.
        """
        seed, key = self._seed.to_bytes(8, "little"), occurrence.to_bytes(8, "little")
        digest = hashlib.blake2b(text, digest_size=8, key=seed, salt=key, person=b"context").digest()
        return KeyedNoise(int.from_bytes(digest, "little"), self._keys)

    def uniform(self, position: int, draw: int = 0) -> float:
        """Return a number in (0, 1) for the `draw`-th random stage of a position; independent of the Gumbel noise."""
        words = philox((draw, 0, position & _WORD, _MAX_DRAWS), self._seed)
        return float(_unit_numbers(words))


CONTEXT_BYTES = 12
"""Bytes of equal text after which two texts share their noise again, with noise keyed by text; about three words."""


class TextNoise:
    """Noise of one seed that is keyed by the text before each token, not by its position.

    The key is the end of the answer so far, `CONTEXT_BYTES` long, and how often it has occurred in the answer. Two
    texts with the same end have the same noise, wherever it is, so they can run together again after a word was
    inserted or removed. No key occurs twice in a text: each text alone has independent noise at every step.
    """

    def __init__(self, noise: KeyedNoise, spellings: Sequence[bytes]) -> None:
        """Use the noise of a seed, and the bytes of all tokens [V] (`context_spellings`)."""
        self._noise, self._spellings = noise, spellings
        self._text, self._counts = b"", dict[bytes, int]()
        self.step = self._next()

    def _next(self) -> KeyedNoise:
        occurrence = self._counts[self._text] = self._counts.get(self._text, -1) + 1
        return self._noise.after_text(self._text, occurrence)

    def add(self, token: int) -> None:
        """Add a token to the answer: `step` is then the noise of the one after it, at position 0."""
        self._text = (self._text + self._spellings[token])[-CONTEXT_BYTES:]
        self.step = self._next()


def context_spellings(model: SpelledModel) -> list[bytes]:
    """Return what each token of a model adds to the text before the next one, [V]: its bytes; the name of a special
    token; without a tokenizer, its id in four bytes.
    """
    spelled = model.token_bytes if model.tokenizer is not None else None
    if spelled is None:
        return [token.to_bytes(4, "little") for token in range(model.vocabulary)]
    names = model.pieces
    return [
        names[token].encode("utf-8", "surrogatepass") if data is None else data
        for token, data in enumerate(spelled[: model.vocabulary])
    ]


def _unit_numbers(words: Sequence[Words]) -> FloatArray:
    """Return numbers in (0, 1) from the first two of Philox' words."""
    drop = np.uint64(64 - _BITS)
    numbers = (words[0] << np.uint64(32) - drop) | (words[1] >> drop)
    unit: FloatArray = (numbers.astype(np.float64) + 0.5) * 2.0**-_BITS
    return unit


def posterior_noise(scores: FloatArray, token: int, noise: FloatArray) -> FloatArray:
    """Return noise [V] distributed as Gumbel noise that made argmax(scores + noise) equal `token`.

    `scores` [V] may have any common offset and −∞ for removed tokens, whose noise stays free; `noise` [V] is standard
    Gumbel noise, from which it is computed: first the maximum, a Gumbel number around logsumexp(scores), then every
    other token below it (Maddison, Tarlow & Minka 2014, A* Sampling). Raises ValueError if the scores exclude `token`.
    """
    if not np.isfinite(scores[token]):
        raise ValueError("the scores exclude the token")
    finite = np.isfinite(scores)
    best = scores[finite].max()
    highest = best + np.log(np.exp(scores[finite] - best).sum()) + noise[token]
    with np.errstate(over="ignore"):
        found: FloatArray = -np.logaddexp(scores - highest, -noise)
    found[token] = highest - scores[token]
    return found


def same_choice_probability(before: FloatArray, after: FloatArray, token: int) -> float:
    """Return the probability that the same noise chooses `token` from `after` too, given that it did from `before`.

    Both are log-probabilities [V]. For Gumbel noise P(both choose x) = 1 / Σ max(p(v) / p(x), q(v) / q(x)); this is the
    average over all noise that explains the choice. Exactly 1 for equal distributions. Raises ValueError if `before`
    excludes `token`.
    """
    if not np.isfinite(before[token]):
        raise ValueError("the scores exclude the token")
    if not np.isfinite(after[token]):
        return 0.0
    if np.array_equal(before, after):
        return 1.0
    ratios = np.maximum(before - before[token], after - after[token])
    return float(min(1.0, np.exp(-before[token] - ratios.max()) / np.exp(ratios - ratios.max()).sum()))
