"""A token that an engine told, as an event: with its alternatives, and nothing that was not told."""

from __future__ import annotations

import math

from core.events import Alternative, Method, TokenChosen
from core.remote.remote_model import RemoteModel
from core.remote.responses import StreamedToken, TokenLogprob


class TokenEventBuilder:
    """Makes the events of one run. `requested`: how many alternatives of a step were asked for; `active_settings`: the settings that
    stand between the model's distribution and the choice."""

    def __init__(self, model: RemoteModel, requested: int, active_settings: frozenset[str], method: Method) -> None:
        self._model, self._requested, self._active_settings, self._method = model, requested, active_settings, method

    def token_id(self, token: StreamedToken) -> int:
        """Its id, or the number that stands for it."""
        return self._model.words.id_of(token.piece, token.id, token.token_bytes)

    def build(self, token: StreamedToken, text: str, step: int, sequence: int, seconds: float) -> TokenChosen:
        """The event. `text`: what the token adds to the text."""
        number = self.token_id(token)
        others, rank = self._alternatives(token, number)
        raw, final = self._log_probabilities(token.log_probability)
        return TokenChosen(
            step=step, sequence=sequence, id=number, piece=token.piece, text=text, raw_probability=math.exp(raw),
            probability=math.exp(final), raw_log_probability=raw, log_probability=final, rank=rank, entropy=math.nan,
            seconds=seconds, alternatives=others, method=self._method,
        )  # fmt: skip

    def _alternatives(self, token: StreamedToken, number: int) -> tuple[tuple[Alternative, ...], int]:
        """The likeliest of a step, the chosen one among them, and its rank; 0 where it is not one of them."""
        found, own, has_own = list[Alternative](), 0, False
        for place, one in enumerate(token.top, 1):
            is_asked = place <= self._requested
            is_own = not has_own and _is_same_token(one, token)
            if not (is_asked or is_own):
                continue  # more than was asked for
            rank = place if is_asked else 0  # one more is the chosen one, from anywhere behind them
            own = rank if is_own else own
            told = number if is_own else self._model.words.id_of(one.piece, one.id, one.token_bytes)
            has_own = has_own or told == number
            found.append(self._alternative(told, one.piece, one.log_probability, rank))
        if found and not has_own:
            found.append(self._alternative(number, token.piece, token.log_probability, 0))
        return tuple(found), own

    def _alternative(self, number: int, piece: str, told: float, rank: int) -> Alternative:
        raw, final = self._log_probabilities(told)
        return Alternative(number, piece, math.exp(raw), math.exp(final), raw, final, rank)

    def _log_probabilities(self, told: float) -> tuple[float, float]:
        """Log-probabilities by the model alone and after the settings, of which an engine tells one: they are the same
        where no setting acts."""
        if self._model.kind.after_temperature and "temperature" in self._active_settings:
            return math.nan, told if self._active_settings == {"temperature"} else math.nan
        return told, math.nan if self._active_settings else told


def _is_same_token(one: TokenLogprob, token: StreamedToken) -> bool:
    """Compare by id: several ids can have the same text. Where ids are missing or contradict each other, the text and
    the log-probability decide."""
    if one.id is not None and token.id is not None:
        is_named_twice = one.piece == token.piece and one.log_probability == token.log_probability
        return one.id == token.id or is_named_twice
    return one.piece == token.piece
