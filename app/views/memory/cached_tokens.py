"""The tokens in a cache at one position of the text: the state of each and its cost in bytes. No Qt."""

from __future__ import annotations

from dataclasses import dataclass

from decodescope.app.state.cache_history import CacheHistory, CachePoint
from decodescope.app.state.run import Run
from decodescope.app.views.text.token_wording import token_text
from decodescope.core import medium_part
from decodescope.core.events import MediumRead
from decodescope.resources.language import mark, tr

HELD, SINK, RECENT, EVICTED, ROOM, SOURCE = "held", "sink", "recent", "evicted", "room", "source"
PACKED, EXACT = "packed", "exact"
STATE_NAMES = {
    HELD: mark("held"),
    SINK: mark("sinks"),
    RECENT: mark("recent"),
    EVICTED: mark("evicted"),
    PACKED: mark("quantized"),
    ROOM: mark("reserved"),
    SOURCE: mark("encoder input"),
    EXACT: mark("unquantized"),
}
"""Names of the states, for legends and counts."""


@dataclass(frozen=True, slots=True)
class CachedTokenRow:
    """Tokens of one part of the cache, in text order."""

    title: str
    states: tuple[str, ...]
    prompt: bool
    """Whether the row starts with the prompt's tokens."""
    shared: int = 1
    """Number of texts that share these tokens."""


def token_rows(model: CacheHistory, run: Run, x: int) -> list[CachedTokenRow]:
    """Return all tokens that the cache has read at `x`, with their states; empty for a recurrent state."""
    point = model.at(x)
    if point is None or (not point.tokens and not model.forecast.per_token):
        return []
    length = model.length_at(x)
    states = token_states(model, point, length)
    own = CachedTokenRow(tr("Tokens in the cache"), states, True, model.shared_rows(point))
    if not any(part in ("self", "cross") for _, part in model.parts):
        return [own]
    medium = encoder_medium(run)
    source = (SOURCE,) * (medium.last + 1 if medium is not None else len(run.prompt))
    return [
        CachedTokenRow(tr("Cross-attention: encoder output, stored once"), source, True),
        CachedTokenRow(tr("Self-attention: generated tokens, one more per step"), own.states, False),
    ]


def token_states(model: CacheHistory, point: CachePoint, length: int) -> tuple[str, ...]:
    """Return a state for each of `length` tokens, and for the reserved room after them."""
    plan = model.plan
    if plan is None:
        return (HELD,) * length
    if plan.block is not None:
        packed = length // plan.block * plan.block
        return (PACKED,) * packed + (EXACT,) * (length - packed)
    if plan.window is not None:
        return _window_states(held_spans(model, point, length), plan.sinks, length)
    return (HELD,) * length + (ROOM,) * max(0, (plan.capacity or 0) - length)


def held_spans(model: CacheHistory, point: CachePoint, length: int) -> tuple[tuple[int, int], ...]:
    """Return the held positions [start, stop): measured, or by the window's rule."""
    if point.measured and point.held_ranges:
        return point.held_ranges
    plan = model.plan
    if plan is None or plan.window is None or length < plan.window:
        return ((0, length),)
    return tuple(
        span for span in ((0, plan.sinks), (length - plan.window + 1 + plan.sinks, length)) if span[0] < span[1]
    )


def _window_states(spans: tuple[tuple[int, int], ...], sinks: int, length: int) -> tuple[str, ...]:
    marks = [EVICTED] * length
    for start, stop in spans:
        for place in range(start, min(stop, length)):
            marks[place] = SINK if place < sinks else RECENT
    return tuple(marks)


def token_bytes(model: CacheHistory, state: str) -> int:
    """Return the bytes of a token in that state, over all rows and layers."""
    if state in (EVICTED, ROOM):
        return model.forecast.per_token if state == ROOM else model.forecast.kept_per_token
    plan = model.plan
    if state == PACKED and plan is not None and plan.block:
        edges = [n for n, length in enumerate(plan.lengths) if length and length % plan.block == 0]
        if edges:
            return round(plan.predicted[edges[0]] / plan.lengths[edges[0]])
    return model.forecast.per_token


def token_tooltip(model: CacheHistory, run: Run, row: CachedTokenRow, index: int) -> str:
    """Return a token's tooltip: its text, state and cost."""
    state = row.states[index]
    if state == ROOM:
        return tr("room for token {number:,}: {bytes:,} bytes, reserved from the start").format(
            number=index + 1, bytes=model.forecast.per_token
        )
    text = _token_text(run, row, index)
    name = (tr("token {number:,} “{text}”") if text else tr("token {number:,}")).format(number=index + 1, text=text)
    if state == EVICTED:
        kept = token_bytes(model, state)
        template = (
            tr("dropped by the windowed layers: {kept:,} bytes now, {bytes:,} before")
            if kept
            else tr("evicted: {kept:,} bytes now, {bytes:,} before")
        )
        fate = template.format(kept=kept, bytes=model.forecast.per_token)
    else:
        size = token_bytes(model, state) // row.shared
        fate = tr("{fate}: {bytes:,} bytes").format(fate=_state_text(model, state), bytes=size)
    return f"{name}\n{fate}"


def _state_text(model: CacheHistory, state: str) -> str:
    """Return the state of a held token in words."""
    if state == PACKED and model.plan is not None:
        return tr("quantized to {bits} bits").format(bits=model.plan.bits)
    if state == EXACT:
        return tr("not quantized until its block is full")
    return {SINK: tr("a sink, never evicted"), RECENT: tr("held unchanged")}.get(state, tr("held"))


def encoder_medium(run: Run) -> MediumRead | None:
    """Return the sound or picture that the encoder reads; None if it reads text, or there is no medium."""
    media = run.started.media if run.started is not None else ()
    return next((medium for medium in media if medium.place == "encoder"), None)


def _token_text(run: Run, row: CachedTokenRow, index: int) -> str:
    encoder_input, leading_picture = encoder_medium(run), _leading_picture(run)
    if encoder_input is not None and row.prompt:
        return medium_part(encoder_input, index)
    if leading_picture is not None:
        if index <= leading_picture.last:
            return medium_part(leading_picture, index)
        index -= leading_picture.last + 1
    prompt = run.before if row.prompt or encoder_input is not None else run.beginning
    index -= 0 if row.prompt or encoder_input is not None else 1  # the decoder's start token
    if 0 <= index < len(prompt):
        return token_text(prompt[index].piece or prompt[index].text, prompt[index].special)
    new = index - len(prompt)
    return token_text(run.tokens[new].piece, run.tokens[new].is_special) if 0 <= new < len(run.tokens) else ""


def _leading_picture(run: Run) -> MediumRead | None:
    """Return the picture in front of the text."""
    media = run.started.media if run.started is not None else ()
    return next((medium for medium in media if medium.place == "before"), None)
