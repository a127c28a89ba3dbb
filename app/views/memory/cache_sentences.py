"""One thing worth knowing of the cache at one place in the text, at the depth of now. No Qt."""

from __future__ import annotations

from app.state.cache_history import CacheHistory, CachePoint
from app.views.text.token_wording import format_token_count
from core import words
from core.events import CachePlan
from resources.depth import pick
from resources.language import tr


def cache_sentence(model: CacheHistory, point: CachePoint, length: int) -> str:
    """From the run's own figures; `length`: tokens read."""
    plan = model.plan
    if plan is None:
        return tr("The cache holds {size}; this model's memory has no formula.").format(size=words.size(point.bytes))
    if not model.forecast.per_token:
        return _recurrent_sentence(point)
    if any(part == "cross" for _, part in model.parts):
        return _encoder_sentence(model, point)
    if plan.window is not None:
        return _window_sentence(plan, length, round(model.forecast.dynamic(length) or 0))
    if plan.block is not None:
        return _quantized_sentence(plan, plan.block, length, round(model.forecast.dynamic(length) or 0))
    if plan.capacity is not None:
        return _static_sentence(plan.capacity, length)
    if any(place == "disk" for place, _ in model.parts):
        return _disk_sentence(sum(size for (place, _), size in point.parts if place == "disk"))
    return _dynamic_sentence(model.forecast.per_token, length)


def _recurrent_sentence(point: CachePoint) -> str:
    return pick(
        tr("All that was read is folded into {size}, which stays as large as it is."),
        tr("Whatever was read is folded into a state of {size}; it does not grow with the text."),
        tr("A recurrent state of {bytes:,} bytes, constant in the length of the text."),
    ).format(size=words.size(point.bytes), bytes=point.bytes)


def _encoder_sentence(model: CacheHistory, point: CachePoint) -> str:
    cross = sum(size for (_, part), size in point.parts if part == "cross")
    return pick(
        tr("{size} hold the text that was given, and stay so; every word piece written adds {per_token:,} bytes."),
        tr("{size} hold what the encoder read and never change; the rest grows by {per_token:,} bytes a token."),
        tr("Cross-attention: {bytes:,} bytes, constant; self-attention: {per_token:,} bytes per token."),
    ).format(size=words.size(cross), bytes=cross, per_token=model.forecast.per_token)


def _window_sentence(plan: CachePlan, length: int, dynamic: int) -> str:
    window = plan.window or 0
    facts = {"dynamic": words.size(dynamic), "bytes": dynamic, "room": window - 1}
    if not plan.sinks:
        return pick(
            tr("Only the latest {room:,} word pieces are remembered; to remember all would take {dynamic}."),
            tr("Windowed layers hold the latest {room:,} tokens only; everything kept would be {dynamic}."),
            tr("Windowed layers hold w − 1 = {room:,} positions; everything kept would be {bytes:,} bytes."),
        ).format(**facts)
    if length < window:
        return pick(
            tr("There is room for {room:,} word pieces; so far none had to be forgotten. Then the oldest will."),
            tr("There is room for {tokens}; so far none had to go. Then the oldest will."),
            tr("{length:,} of {room:,} positions are taken; nothing is evicted yet."),
        ).format(**facts, tokens=format_token_count(window - 1), length=length)
    return pick(
        tr("The first {sinks} and the latest {latest:,} word pieces are remembered, what lies between is forgotten. To "
           "remember all would take {dynamic}."),
        tr("The first {tokens} stay as sinks; of the rest only the latest {latest:,}. Without it, the cache would hold "
           "{dynamic} by now."),
        tr("{sinks} sinks + the latest {latest:,} of {length:,} positions; a dynamic cache: {bytes:,} bytes."),
    ).format(**facts, tokens=format_token_count(plan.sinks), sinks=plan.sinks, latest=window - 1 - plan.sinks,
             length=length)  # fmt: skip


def _quantized_sentence(plan: CachePlan, block: int, length: int, dynamic: int) -> str:
    return pick(
        tr("What is older is written down roughly, the latest {waiting} word pieces are still exact. All of it exact "
           "would take {dynamic}."),
        tr("Every {block} tokens are written in {bits} bits a number, the latest {waiting} still wait as they are. "
           "Unharmed, all of them would take {dynamic}."),
        tr("{packed:,} positions in {bits} bits, {waiting} in full, blocks of {block}; a dynamic cache would hold "
           "{bytes:,} bytes."),
    ).format(block=block, bits=plan.bits, waiting=length % block, packed=length - length % block,
             dynamic=words.size(dynamic), bytes=dynamic)  # fmt: skip


def _static_sentence(capacity: int, length: int) -> str:
    return pick(
        tr("Room for {capacity:,} word pieces was taken at once; {used} of it is in use."),
        tr("Room for {capacity:,} tokens was taken at once; {used} of it is in use."),
        tr("{length:,} of {capacity:,} allocated positions are in use, {used}."),
    ).format(capacity=capacity, length=length, used=words.percent(min(1.0, length / capacity)))


def _disk_sentence(size: int) -> str:
    return pick(
        tr("{size} wait on the disk, and are fetched piece by piece when they are needed."),
        tr("{size} wait on disk; only one layer at a time is in memory between two steps."),
        tr("{bytes:,} bytes on disk; one layer at a time is resident between two steps."),
    ).format(size=words.size(size), bytes=size)


def _dynamic_sentence(per_token: int, length: int) -> str:
    return pick(
        tr("Every word piece adds {per_token:,} bytes, and none is ever forgotten."),
        tr("Every token adds {per_token:,} bytes, and none is ever forgotten."),
        tr("{per_token:,} bytes per token × {length:,} tokens; nothing is evicted."),
    ).format(per_token=per_token, length=length)
