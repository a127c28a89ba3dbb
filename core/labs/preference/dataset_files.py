"""Read and write datasets for fine-tuning and rankings as JSON lines, in the formats of TRL, ShareGPT, Alpaca, OpenAI
and UltraFeedback.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from decodescope.core.checks.arguments import check_path
from decodescope.core.errors import PreferenceError
from decodescope.core.labs.arguments import lab_object_list
from decodescope.core.labs.preference.rankings import Pair, Ranking, pairs, parse_ranking
from decodescope.core.system.file_writing import atomic_write, not_written_error
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import tr

_ROLES = {"human": "user", "gpt": "assistant", "chatgpt": "assistant", "bing": "assistant", "bard": "assistant",
          "model": "assistant", "bot": "assistant"}  # fmt: skip
"""ShareGPT's names of roles."""
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
    """Return the line with this program's keys: `messages`, or `prompt` and `completion`."""
    if isinstance(turns := values.get("conversations"), list):
        return {"messages": [_normalize_turn(one) for one in turns]}
    if isinstance(turns := values.get("messages"), list):
        return {"messages": [_normalize_turn(one) for one in turns]}
    if "instruction" in values and "output" in values:
        system = values.get("system")
        question = "\n\n".join(str(values[name]) for name in ("instruction", "input") if values.get(name))
        before = [{"role": "system", "content": system}] if isinstance(system, str) and system else []
        answer = {"role": "assistant", "content": values["output"]}
        return {"messages": [*before, {"role": "user", "content": question}, answer]}
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


BUNDLED_RANKINGS = Path(__file__).resolve().parents[3] / "resources" / "preference" / "rankings.jsonl"
"""Story endings ranked by `rank_by_rule`; made by packaging/preference/rankings.py."""
MAX_FILE_BYTES = 64 * 2**20
T = TypeVar("T")


def bundled_rankings() -> list[Ranking]:
    """Read the rankings that ship with the program."""
    return read_rankings(BUNDLED_RANKINGS)


class WrongDatasetError(PreferenceError):
    """A line of a file that is meant for another kind of training."""


def read_rankings(path: str | Path) -> list[Ranking]:
    """Read the rankings of a JSONL file; pairs become rankings of two. Raises ParameterError, or PreferenceError naming
    the line.
    """
    check_path("path", path)
    found = read_json_lines(Path(path), _parse_ranking, _format_remedy())
    if not found:
        raise PreferenceError(tr("{file} contains no rankings.").format(file=Path(path).name), _format_remedy())
    return found


def write_rankings(path: str | Path, rankings: Iterable[Ranking]) -> None:
    """Write one line for each ranking. Raises ParameterError, FileNotWrittenError."""
    check_path("path", path)
    _write_json_lines(Path(path), map(asdict, lab_object_list("rankings", rankings, Ranking)))


def write_pairs(path: str | Path, rankings: Iterable[Ranking]) -> int:
    """Write one line for each pair in TRL's format, and return the number of pairs. Raises ParameterError,
    FileNotWrittenError.
    """
    check_path("path", path)
    found: list[Pair] = [pair for ranking in lab_object_list("rankings", rankings, Ranking) for pair in pairs(ranking)]
    _write_json_lines(Path(path), (pair._asdict() for pair in found))
    return len(found)


def _parse_ranking(values: dict[str, object]) -> Ranking:
    if is_example(values):
        raise WrongDatasetError(
            tr("This is an example for fine-tuning, not a ranking."),
            tr("Use the file for fine-tuning instead, or provide “prompt”, “chosen” and “rejected”."),
        )
    return parse_ranking(normalize_ranking(values))


def read_json_lines(path: Path, parse: Callable[[dict[str, object]], T], remedy: str) -> list[T]:
    """Parse the object on each line, or each item of a JSON list, with `parse`.

    `remedy` describes the expected content. Raises PreferenceError naming the file and the line.
    """
    try:
        if path.exists() and not path.is_file():  # a pipe would block forever, a device might never end
            raise PreferenceError(
                tr("{file} is a folder, a pipe or a device, not a file.").format(file=path.name), remedy
            )
        if path.stat().st_size > MAX_FILE_BYTES:
            raise PreferenceError(
                tr("{file} is larger than {most} MB.").format(file=path.name, most=MAX_FILE_BYTES // 2**20), remedy
            )
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:  # invalid UTF-8, or an invalid path
        raise PreferenceError(
            tr("{file} cannot be read: {error}.").format(file=path.name, error=system_error_reason(error)), remedy
        ) from error
    lines: list[object] = [*text.split("\n")]
    if text.lstrip().startswith("["):
        try:
            lines = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise PreferenceError(
                tr("{file} is not valid JSON: {error}.").format(file=path.name, error=error), remedy
            ) from error
    return [
        _read_line(path, number, line, parse, remedy)
        for number, line in enumerate(lines, 1)
        if not isinstance(line, str) or line.strip()
    ]


def _read_line(path: Path, number: int, line: object, parse: Callable[[dict[str, object]], T], remedy: str) -> T:
    try:
        values = json.loads(line) if isinstance(line, str) else line
        if not isinstance(values, dict):
            raise PreferenceError(tr("It is not a JSON object."))
        return parse(values)
    except (ValueError, RecursionError) as error:
        cause = tr("It is not valid JSON: {error}.").format(error=error)
    except PreferenceError as error:
        cause = error.cause
        if isinstance(error, WrongDatasetError):
            remedy = error.remedy
    raise PreferenceError(
        tr("Line {number} of {file}: {cause}").format(number=number, file=path.name, cause=cause), remedy
    )


def _format_remedy() -> str:
    return tr("Each line is a JSON object with “prompt”, “chosen” and “rejected”.")


def _write_json_lines(path: Path, rows: Iterable[dict[str, object]]) -> None:
    """Write the file atomically. Raises FileNotWrittenError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as part, part.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    except (OSError, ValueError) as error:  # an invalid path raises ValueError
        raise not_written_error(path, error) from error
