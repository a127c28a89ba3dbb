"""Lines of the files that people fine-tune with, as examples and rankings of this program.

Read: ShareGPT (`conversations` of `from` and `value`), Alpaca (`instruction`, `input`, `output`), OpenAI (`messages`),
TRL (`prompt` and `completion`, `prompt`, `chosen` and `rejected`, as texts or turns), UltraFeedback (`completions` with
scores).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_ROLES = {"human": "user", "gpt": "assistant", "chatgpt": "assistant", "bing": "assistant", "bard": "assistant",
          "model": "assistant", "bot": "assistant"}  # fmt: skip
"""ShareGPT's names of who speaks."""
_SCORES = ("overall_score", "fine-grained_score", "score", "rating")


def is_example(values: Mapping[str, object]) -> bool:
    """Return whether a line is an example for fine-tuning."""
    is_alpaca = "instruction" in values and "output" in values
    is_ranking = bool({"chosen", "rejected", "ranks"} & values.keys())
    return not is_ranking and bool(is_alpaca or {"messages", "conversations", "completion"} & values.keys())


def is_ranking(values: Mapping[str, object]) -> bool:
    """Return whether a line compares answers."""
    return bool({"chosen", "rejected", "ranks"} & values.keys()) or isinstance(values.get("completions"), list)


def normalize_example(values: Mapping[str, object]) -> Mapping[str, object]:
    """Return the line with the names of this program: `messages`, or `prompt` and `completion`."""
    if isinstance(turns := values.get("conversations"), list):
        return {"messages": [_normalize_turn(one) for one in turns]}
    if isinstance(turns := values.get("messages"), list):
        return {"messages": [_normalize_turn(one) for one in turns]}
    if "instruction" in values and "output" in values:
        system = values.get("system")
        asked = "\n\n".join(str(values[name]) for name in ("instruction", "input") if values.get(name))
        before = [{"role": "system", "content": system}] if isinstance(system, str) and system else []
        answer = {"role": "assistant", "content": values["output"]}
        return {"messages": [*before, {"role": "user", "content": asked}, answer]}
    prompt, completion = values.get("prompt"), values.get("completion")
    if isinstance(prompt, list) and isinstance(completion, list):
        return {"messages": [_normalize_turn(one) for one in (*prompt, *completion)]}
    return values


def normalize_ranking(values: Mapping[str, object]) -> Mapping[str, object]:
    """Return the line as `prompt`, `chosen` and `rejected`, or as `prompt`, `completions` and `ranks`."""
    answers = values.get("completions")
    if isinstance(answers, list) and "ranks" not in values and all(map(_has_score, answers)):
        scores = [_score(one) for one in answers]
        order = sorted(set(scores), reverse=True)
        prompt = values.get("prompt", values.get("instruction", ""))
        texts = [one.get("response", one.get("text", "")) for one in answers]
        return {"prompt": prompt, "completions": texts, "ranks": [order.index(one) + 1 for one in scores]}
    chosen, rejected = values.get("chosen"), values.get("rejected")
    if not (isinstance(chosen, list) and isinstance(rejected, list)):
        question = values.get("prompt", values.get("instruction", values.get("question", "")))
        return {**values, "prompt": _join_turns(question)}
    before = values.get("prompt") or [*chosen[:-1]]
    return {"prompt": _join_turns(before), "chosen": _last_content(chosen), "rejected": _last_content(rejected)}


def _normalize_turn(turn: object) -> object:
    """Return one turn with `role` and `content`, its content as one text."""
    if not isinstance(turn, Mapping):
        return turn
    role, content = turn.get("role", turn.get("from")), turn.get("content", turn.get("value"))
    if isinstance(content, list) and all(isinstance(one, Mapping) and one.get("type") == "text" for one in content):
        content = "".join(str(one.get("text", "")) for one in content)
    return {"role": _ROLES.get(str(role), role), "content": content}


def _join_turns(prompt: object) -> object:
    """Return a prompt of several turns as one text."""
    if not isinstance(prompt, Sequence) or isinstance(prompt, str):
        return prompt
    turns = [one for one in map(_normalize_turn, prompt) if isinstance(one, Mapping)]
    return "\n\n".join(str(one["content"]) for one in turns)


def _last_content(turns: Sequence[object]) -> object:
    last = _normalize_turn(turns[-1]) if turns else None
    return last["content"] if isinstance(last, Mapping) else None


def _has_score(answer: object) -> bool:
    return isinstance(answer, Mapping) and any(isinstance(answer.get(name), (int, float)) for name in _SCORES)


def _score(answer: Mapping[str, object]) -> float:
    return next(float(value) for name in _SCORES if isinstance(value := answer.get(name), (int, float)))
