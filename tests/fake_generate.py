"""Messages of SGLang's native endpoint `/generate`, written by hand from its documentation and published schemas."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

Step = tuple[str, float, dict[str, float]]


def message(how: str, body: dict[str, Any], number: int, story: Sequence[Step], count: int) -> dict[str, Any]:
    """Return the message for the last step of `story`; `how`: all of the text, or only its new part."""
    first = 0 if how == "whole" else len(story) - 1
    meta: dict[str, Any] = {"id": f"r{number}", "finish_reason": None, "prompt_tokens": 7, "cached_tokens": 3,
                            "completion_tokens": len(story)}  # fmt: skip
    if body.get("return_logprob"):
        named = bool(body.get("return_text_in_logprobs"))
        meta["output_token_logprobs"] = [_log(100 + n, *story[n][:2], named) for n in range(first, len(story))]
        meta["output_top_logprobs"] = [_top(step, body["top_logprobs_num"], named) for step in story[first:]]
    if len(story) == count:
        stop = body.get("stop")
        meta["finish_reason"] = (
            {"type": "stop", "matched": stop[0] if stop else 2} if _is_end(story) else _length(count)
        )
        meta |= {"spec_verify_ct": 2, "spec_accept_length": 2.5, "spec_accept_rate": 0.75, "e2e_latency": 0.1,
                 "spec_num_correct_drafts": 6, "spec_num_proposed_drafts": 8}  # fmt: skip
    text = "".join(step[0] for step in (story if how in ("whole", "both") else story[first:]))
    return {"text": text, "output_ids": list(range(100 + first, 100 + len(story))), "meta_info": meta, "index": number}


def _is_end(story: Sequence[Step]) -> bool:
    return story[-1][0] == "."


def _length(count: int) -> dict[str, Any]:
    return {"type": "length", "length": count}


def _log(number: int, piece: str, share: float, named: bool) -> list[Any]:
    return [math.log(share), number, piece if named else None]


def _top(step: Step, count: int, named: bool) -> list[list[Any]]:
    return [_log(200 + place, piece, share, named) for place, (piece, share) in enumerate(step[2].items())][:count]
