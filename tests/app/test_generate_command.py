"""`decodescope generate`: requests from a file, recordings and tables, continuing after an interruption, exit codes."""

from __future__ import annotations

import csv
import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from decodescope import core
from decodescope.app.__main__ import main
from decodescope.app.start.cli import generate
from decodescope.app.state.recorded_run import load_run
from decodescope.core.plugins import PluginFolder, install
from tests.core import tiny

PROMPT = tiny.prompt()
LINES = [
    {"id": "a/b", "prompt": PROMPT, "strategy": "sampling", "settings": {"max_new_tokens": 4}, "seeds": [1, 2]},
    {"prompt": PROMPT, "settings": {"num_beams": 2, "max_new_tokens": 3, "num_return_sequences": 2}},
    {"id": "=1+1", "prompt": PROMPT, "strategy": "beam_search", "settings": {"num_beams": 2, "max_new_tokens": 2}},
]


@pytest.fixture(autouse=True)
def tiny_model(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every model is a tiny one; returns the names that were loaded."""
    loaded: list[str] = []

    def load(name: str, **_more: object) -> core.LoadedModel:
        if name == "missing":
            raise core.errors.ModelNotFoundError("There is no model called missing.")
        loaded.append(name)
        return tiny.shared("llama")

    monkeypatch.setattr(core, "load", load)
    return loaded


def write(folder: Path, *lines: object) -> Path:
    path = folder / "requests.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), "utf-8")
    return path


def results(folder: Path) -> list[dict[str, Any]]:
    with (folder / "results.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def table(folder: Path) -> list[dict[str, str]]:
    with (folder / "results.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_generate_writes_recordings_jsonl_and_csv(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["generate", str(write(tmp_path, *LINES)), "--out", str(out), "--quiet"]) == 0
    found = results(out)
    assert [(one["id"], one["seed"], one["strategy"]) for one in found] == [
        ("a/b", 1, "sampling"), ("a/b", 2, "sampling"), ("2", 0, "beam_search"), ("=1+1", 0, "beam_search"),
    ]  # fmt: skip
    assert len(found[2]["texts"]) == 2
    for one in found:
        events = list(core.replay(out / one["recording"]))
        assert events[-1].texts[0] == one["text"]
    same = core.run(tiny.shared("llama"), core.Request(PROMPT, {"max_new_tokens": 4}, strategy="sampling", seed=2))
    assert found[1]["text"] == same.texts[0]
    rows = table(out)
    assert [row["id"] for row in rows] == ["a/b", "a/b", "2", "2", "'=1+1"]
    assert [int(row["tokens"]) for row in rows] == [4, 4, 3, 3, 2]
    assert main(["generate", str(write(tmp_path, *LINES)), "--out", str(out), "--quiet", "--plain-csv"]) == 0
    assert "\r\n" not in (out / "results.jsonl").read_text("utf-8")
    assert ",=1+1," in (out / "results.csv").read_text("utf-8")


def test_table_has_a_row_for_each_text_with_settings_and_metrics(tmp_path: Path) -> None:
    lines = [
        {"id": "several", "prompt": PROMPT, "seed": 3,
         "settings": {"do_sample": True, "num_return_sequences": 2, "max_new_tokens": 4, "temperature": 0.5}},
        {"id": "beams", "prompt": PROMPT,
         "settings": {"num_beams": 3, "num_return_sequences": 2, "max_new_tokens": 3}},
        {"id": "lookup", "prompt": PROMPT * 2, "settings": {"prompt_lookup_num_tokens": 2, "max_new_tokens": 6}},
    ]  # fmt: skip
    assert main(["generate", str(write(tmp_path, *lines)), "--out", str(tmp_path), "--quiet"]) == 0
    rows = table(tmp_path)
    assert [(row["id"], row["text_number"]) for row in rows] == [
        ("several", "1"), ("several", "2"), ("beams", "1"), ("beams", "2"), ("lookup", ""),
    ]  # fmt: skip
    assert [json.loads(row["prompt"]) for row in rows] == [*[PROMPT] * 4, PROMPT * 2]
    assert {row["finish"] for row in rows} == {"length"}
    assert [(row["seed"], row["temperature"]) for row in rows[:3]] == [("3", "0.5"), ("3", "0.5"), ("0", "")]
    assert {"acceptance_rate", "seconds", "cache_bytes"} <= rows[-1].keys()
    assert int(rows[-1]["target_passes"]) > 0
    model = tiny.shared("llama")
    for row, one in zip(rows, [lines[0], lines[0], lines[1], lines[1], lines[2]], strict=True):
        prompt = one["prompt"]
        result = core.run(model, core.Request(prompt, one["settings"], seed=one.get("seed", 0)))
        place = int(row["text_number"] or 1) - 1
        assert row["text"] == result.texts[place]
        scored = core.score(model, list(result.sequences[place]), given=prompt)
        expected = sum(token.raw_log_probability for token in scored) / len(result.sequences[place])
        assert float(row["mean_log_probability"]) == pytest.approx(expected, abs=1e-4)
        if result.scores is not None:
            assert float(row["score"]) == pytest.approx(result.scores[place], abs=1e-5)


def test_runs_that_do_not_depend_on_the_seed_run_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stream, begun = core.stream, list[int]()

    def counted(model: object, request: core.Request, **more: Any) -> Iterator[core.events.Event]:
        begun.append(request.seed)
        return stream(model, request, **more)

    monkeypatch.setattr(core, "stream", counted)
    settings: dict[str, object] = {"max_new_tokens": 3}
    lines = [
        {"id": "greedy", "prompt": PROMPT, "settings": settings, "seeds": [1, 2, 3]},
        {"id": "random", "prompt": PROMPT, "settings": settings | {"do_sample": True}, "seeds": [1, 2]},
        {"id": "beams", "prompt": PROMPT, "settings": settings | {"num_beams": 2, "do_sample": True}, "seeds": [1, 2]},
    ]
    assert main(["generate", str(write(tmp_path, *lines)), "--out", str(tmp_path), "--quiet"]) == 0
    assert begun == [1, 1, 2, 1, 2]
    assert "2 runs do not depend on their seeds" in capsys.readouterr().err
    greedy = results(tmp_path)[:3]
    assert [(one["seed"], one["text"], one["recording"]) for one in greedy] == [
        (seed, greedy[0]["text"], greedy[0]["recording"]) for seed in (1, 2, 3)
    ]


def test_processors_draw_random_numbers_only_while_sampling() -> None:
    """`generate` runs a greedy request once, whatever its seeds."""
    drawing = [one.name for one in core.processors.registry.values() if one.uses_rng and not one.samples]
    assert drawing == ["thinking_extensions"], "which draws only if the request samples"


def test_second_process_on_one_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = generate.Output(tmp_path / "out")
    arguments = ["generate", str(write(tmp_path, LINES[0])), "--out", str(tmp_path / "out"), "--quiet"]
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert "Another `decodescope generate`" in error
    assert "--out" in error
    first.close()
    assert main(arguments) == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"runs", "results.jsonl", "results.csv"}


def test_damaged_recording_is_not_called_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = core.trace.read

    def damage(path: Path) -> core.trace.Trace:
        path.write_bytes(path.read_bytes()[:-40])
        return read(path)

    arguments = ["generate", str(write(tmp_path, LINES[1])), "--out", str(tmp_path), "--quiet"]
    with monkeypatch.context() as damaged:
        damaged.setattr(core.trace, "read", damage)
        assert main(arguments) == 1
    assert results(tmp_path)[0]["error"]
    assert list((tmp_path / "runs").iterdir()) == []
    assert main(arguments) == 0


@pytest.mark.parametrize(("code", "remedy"), [(errno.ENOSPC, "Free up space"), (errno.ENOENT, "--out")])
def test_unwritable_results_are_an_error_with_folder_and_remedy(
    code: int, remedy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(generate.os, "fsync", fail)
    assert main(["generate", str(write(tmp_path, LINES[1])), "--out", str(tmp_path / "out"), "--quiet"]) == 1
    error = capsys.readouterr().err
    assert str(tmp_path / "out") in error
    assert remedy in error
    assert "Errno" not in error


def test_long_id_gets_a_name_that_file_systems_allow(tmp_path: Path) -> None:
    line = {"id": "\U00010330" * 300, "prompt": PROMPT, "settings": {"max_new_tokens": 1}}
    assert main(["generate", str(write(tmp_path, line)), "--out", str(tmp_path), "--quiet"]) == 0
    assert len(results(tmp_path)[0]["recording"].encode()) < 200


def test_recording_of_generate_can_be_loaded(tmp_path: Path) -> None:
    assert main(["generate", str(write(tmp_path, LINES[0])), "--out", str(tmp_path), "--quiet"]) == 0
    run = load_run(core.trace.read(tmp_path / results(tmp_path)[0]["recording"]))
    assert run.text == results(tmp_path)[0]["text"]


def test_generate_resumes_after_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stream, begun = core.stream, list[int]()

    def interrupted(model: object, request: core.Request, **more: Any) -> Iterator[core.events.Event]:
        begun.append(request.seed)
        for number, event in enumerate(stream(model, request, **more)):
            if len(begun) == 2 and number == 3:
                raise KeyboardInterrupt
            yield event

    monkeypatch.setattr(core, "stream", interrupted)
    arguments = ["generate", str(write(tmp_path, *LINES)), "--out", str(tmp_path / "out"), "--quiet"]
    assert main(arguments) == 130
    assert "to continue" in capsys.readouterr().err
    assert len(results(tmp_path / "out")) == 1
    assert len(list((tmp_path / "out" / "runs").iterdir())) == 1
    with (tmp_path / "out" / "results.jsonl").open("a") as file:
        file.write('{"key": "half a li')  # as a kill leaves it
    assert main(arguments) == 0
    assert begun == [1, 2, 2, 0, 0]
    assert "1 run is already finished" in capsys.readouterr().err
    assert len(results(tmp_path / "out")) == 4
    assert len(list((tmp_path / "out" / "runs").iterdir())) == 4
    assert main(arguments) == 0
    assert len(begun) == 5
    next((tmp_path / "out" / "runs").glob("*a_b-2*")).unlink()
    assert main(arguments) == 0
    assert begun[5:] == [2]


def test_a_run_that_fails_does_not_stop_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        {"id": "none", "prompt": "x", "model": "missing"},
        {"id": "odd", "prompt": PROMPT, "strategy": "odd"},
        {"id": "range", "prompt": PROMPT, "settings": {"temperature": -1, "do_sample": True}},
        LINES[1],
    ]
    arguments = ["generate", str(write(tmp_path, *lines)), "--out", str(tmp_path), "--quiet"]
    assert main(arguments) == 1
    errors = {one["id"]: one.get("error", "") for one in results(tmp_path)}
    assert "missing" in errors["none"]
    assert "no strategy called" in errors["odd"]
    assert "temperature" in errors["range"].lower()
    assert errors["4"] == ""
    assert "3 runs failed." in capsys.readouterr().err
    assert main(arguments) == 1  # those that failed are repeated
    assert len(results(tmp_path)) == 7


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "Line 1: it is not valid JSON"), ("[]", "not a JSON object"), ("{}", "no prompt"), ("", "no requests"),
        ('{"prompt": "x", "promt": 1}', "“promt” is unknown"), ('{"prompt": "x", "settings": []}', "“settings”"),
        ('{"prompt": "x", "seed": 1, "seeds": [1]}', "both"), ('{"prompt": "x", "seeds": ["1"]}', "whole numbers"),
        ('{"prompt": "x", "seeds": []}', "whole numbers"), ('{"prompt": "x", "drafts": [1]}', "“drafts”"),
        ("[" * 99999, "JSON"), ('{"prompt": ' + "[" * 400 + "]" * 400 + "}", "levels"),
        ('{"prompt": "x", "strategy": []}', "“strategy”"),
        ('{"prompt": "x", "cache": 3}', "“cache”"),
    ],
)  # fmt: skip
def test_invalid_line_error_names_line_number(
    line: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", str(write(tmp_path, line)), "--out", str(tmp_path / "out")]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_oversized_line_error_names_line_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, LINES[0], {"prompt": "x" * generate.MAX_LINE_BYTES})
    assert main(["generate", str(path), "--out", str(tmp_path / "out")]) == 2
    assert "Line 2: it is longer than 10 MB" in capsys.readouterr().err


def test_unreadable_input_or_unwritable_output_exits_with_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", str(tmp_path / "none.jsonl"), "--out", str(tmp_path)]) == 2
    assert "none.jsonl cannot be read" in capsys.readouterr().err
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe")
    assert main(["generate", str(tmp_path / "binary.jsonl"), "--out", str(tmp_path)]) == 2
    (tmp_path / "results.jsonl").mkdir()  # passes the check of the folder
    capsys.readouterr()
    assert main(["generate", str(write(tmp_path, LINES[0])), "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert f"cannot be written to {tmp_path}" in error
    assert "--out" in error
    assert "Errno" not in error


def test_bom_crlf_unicode_line_breaks_and_repeated_ids_are_accepted(tmp_path: Path) -> None:
    """A byte order mark, CR LF, U+2028 inside a text; runs of one id have recordings of their own."""
    lines = [
        json.dumps({"id": "a\u2028b", "prompt": PROMPT[:count], "settings": {"max_new_tokens": 1}}, ensure_ascii=False)
        for count in (2, 3)
    ]
    path = tmp_path / "requests.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([*lines, ""]).encode())
    assert main(["generate", str(path), "--out", str(tmp_path), "--quiet"]) == 0
    assert [one["id"] for one in results(tmp_path)] == ["a\u2028b"] * 2
    assert len({one["recording"] for one in results(tmp_path)}) == 2


def test_inserted_line_does_not_repeat_finished_runs(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first, second = ({"id": name, "prompt": PROMPT, "settings": {"max_new_tokens": 1}} for name in "ab")
    for lines in ([second], [first, second]):
        assert main(["generate", str(write(tmp_path, *lines)), "--out", str(out), "--quiet"]) == 0
    assert [one["id"] for one in results(out)] == ["b", "a"]
    assert (out / "results.csv").read_text("utf-8").count("\n") == 3


@pytest.mark.parametrize("command", ["generate", "show"])
def test_help_and_wrong_options_have_exit_codes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert "exit codes" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main([command, "--wrong"])
    assert ended.value.code == 2


def test_models_are_loaded_once_each(tmp_path: Path, tiny_model: list[str]) -> None:
    lines = [{"prompt": PROMPT, "model": name, "settings": {"max_new_tokens": 1}} for name in "abab"]
    assert main(["generate", str(write(tmp_path, *lines)), "--out", str(tmp_path), "--quiet", "--no-recordings"]) == 0
    assert tiny_model == ["a", "b"]
    assert not (tmp_path / "runs").exists()


def test_plugins_and_measures_are_used_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = PluginFolder(tmp_path)
    path = folder.create("processor").path
    assert path is not None
    path.write_text(
        "from decodescope.core.measures import Measure\n"
        "MEASURE = Measure('letters', 'Letters', '', lambda text: len(text.tokens))\n"
    )
    folder.switch_on(folder.scan()[0])
    monkeypatch.setattr("decodescope.core.plugins.PluginFolder", lambda: folder)
    arguments = ["generate", str(write(tmp_path, LINES[0])), "--out", str(tmp_path / "out"), "--quiet"]
    try:
        assert main(arguments) == 0
        assert "letters" not in results(tmp_path / "out")[0]["texts"][0]["measures"]
        arguments[3] = str(tmp_path / "other")
        assert main([*arguments, "--plugins"]) == 0
        assert results(tmp_path / "other")[0]["texts"][0]["measures"]["letters"] == 4
    finally:
        install([])


def test_names_of_recordings_are_safe() -> None:
    runs = generate.plan_runs(['{"id": "../../etc/passwd", "prompt": "x"}', '{"id": "…", "prompt": "x"}'], "m")
    assert all("/" not in one.file_name and not one.file_name.startswith(".") for one in runs)


def test_a_custom_generate_folder_is_a_strategy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inside = tmp_path / "mine" / "custom_generate"
    inside.mkdir(parents=True)
    (inside / "generate.py").write_text(
        "import torch\n\ndef generate(model, input_ids, generation_config=None, **kwargs):\n"
        "    for _ in range(generation_config.max_new_tokens):\n"
        "        input_ids = torch.cat([input_ids, model(input_ids).logits[:, -1].argmin(-1)[:, None]], 1)\n"
        "    return input_ids\n"
    )
    lines = write(tmp_path, {"prompt": PROMPT, "strategy": "mine", "settings": {"max_new_tokens": 3}})
    common = [str(lines), "--quiet", "--out"]
    try:
        assert generate.run([*common, str(tmp_path / "out"), "--use", str(tmp_path / "mine")]) == 0
    finally:
        install([])
    [result] = results(tmp_path / "out")
    assert (result["strategy"], result["metrics"]["new_tokens"]) == ("mine", 3)
    assert generate.run([*common, str(tmp_path / "other"), "--use", str(tmp_path)]) == 1
    assert "contains no custom_generate/generate.py" in capsys.readouterr().err
