"""Studies on a local model: rows, stopping and resuming, measures, added runs, summaries and reports."""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import decodescope
from decodescope import core
from decodescope.core.errors import DecodescopeError, ModelNotFoundError, StudyError
from decodescope.core.studies import Study, StudyProgress
from decodescope.core.studies import runner as study_runner

ROOT = Path(__file__).parents[3]
NAMES = ("Tom", "Lily", "Mia", "Ben", "Sam", "Max", "Sue", "Ann")
STUDY = f"""
seeds = 3
measures = ["length", "log_probability", "entropy", "distinct_1", "repetition", "exact_match", "tokens_per_pass"]
best_of = "log_probability"
baseline = {{ strategy = "greedy" }}
[prompts]
items = [{", ".join(f'{{name = "{name}", answer = "the"}}' for name in NAMES)}]
template = "Once upon a time, {{name}}"
[answers]
pattern = "\\\\b(the|a)\\\\b"
[settings]
max_new_tokens = 6
[[cells]]
strategy = "greedy"
[[cells]]
strategy = "sampling"
"""


def write(folder: Path, text: str = STUDY) -> Path:
    path = folder / "study.toml"
    path.write_text(text, "utf-8")
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """The study above, finished."""
    return Study(write(tmp_path_factory.mktemp("study"))).run()


def test_each_text_is_a_row_and_greedy_cells_run_once(finished: Study) -> None:
    rows = finished.rows()
    assert len(rows) == 8 * (1 + 3)
    assert {row["seed"] for row in rows if row["cell"]["strategy"] == "greedy"} == {1}
    model = core.load("storyteller")
    for row in rows[::5]:
        request = core.Request(row["prompt"], {"max_new_tokens": 6}, strategy=row["cell"]["strategy"], seed=row["seed"])
        same = core.run(model, request)
        assert row["text"] == same.texts[0]
        scored = core.score(model, same.sequences[0], given=row["prompt"])
        mean = sum(token.raw_log_probability for token in scored) / len(scored)
        assert row["values"]["log_probability"] == pytest.approx(mean, abs=1e-4)
        assert row["values"]["length"] == len(same.sequences[0])
        assert list(core.replay(finished.folder / row["recording"]))[-1].texts == tuple(same.texts)


def test_summary_compares_cells_with_the_baseline(finished: Study) -> None:
    summary = finished.summary()
    greedy, sampling = summary.cells
    assert (greedy.texts, sampling.texts, greedy.prompts) == (8, 24, 8)
    assert greedy.differences == {}
    found, rows = sampling.differences["log_probability"], finished.rows()
    assert found is not None

    def mean_of(prompt: str, strategy: str) -> float:
        own = [row["values"]["log_probability"] for row in rows
               if row["prompt_id"] == prompt and row["cell"]["strategy"] == strategy]  # fmt: skip
        return sum(own) / len(own)

    prompts = [str(number) for number in range(1, 9)]
    expected = sum(mean_of(one, "sampling") - mean_of(one, "greedy") for one in prompts) / 8
    assert found.estimate.mean == pytest.approx(expected)
    assert found.estimate.low is not None
    assert found.adjusted_p == found.p
    assert len(sampling.pass_at_k) == 3
    assert len(sampling.best_of_k) == 3
    assert sampling.majority is not None
    text = summary.as_text(60)
    assert "strategy" in text
    assert max(map(len, text.splitlines()[3:])) <= 130
    assert summary.text == STUDY


def test_csv_and_report_contain_everything(finished: Study, tmp_path: Path) -> None:
    with finished.write_csv(tmp_path / "a.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["text"].lstrip("'") for row in rows] == [row["text"] for row in finished.rows()]
    assert {"prompt", "strategy", "seed", "finish", "log_probability", "do_sample", "seconds", "cache_bytes"} <= set(
        rows[0]
    )
    page = finished.write_report(tmp_path / "a.html").read_text("utf-8")
    assert "max_new_tokens = 6" in page
    assert core.load("storyteller").identity.config_hash in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    assert page.count("<td") == page.count("</td>")


def test_report_escapes_texts(tmp_path: Path) -> None:
    study = Study(
        write(tmp_path, '[prompts]\ntexts = ["<script>alert(1)</script>"]\n[settings]\nmax_new_tokens = 2\n')
    ).run()
    page = study.write_report(tmp_path / "a.html").read_text("utf-8")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


def test_finished_study_runs_nothing_again(finished: Study) -> None:
    def load(*_arguments: object, **_more: object) -> object:
        raise AssertionError("nothing is left to run")

    seen: list[StudyProgress] = []
    Study.from_plan(finished.plan, finished.folder, load=load)
    finished.close()
    again = Study.from_plan(finished.plan, finished.folder, load=load).run(seen.append)
    again.close()
    assert (seen[-1].done, seen[-1].total) == (48, 48)


def test_new_values_and_measures_use_the_old_results(tmp_path: Path) -> None:
    text = '[prompts]\ntexts = ["Once"]\n[settings]\nmax_new_tokens = 2\n[grid]\ntop_k = [5]\n'
    with Study(write(tmp_path, text)) as study:
        study.run()
    loads: list[str] = []

    def load(name: str, **more: Any) -> object:
        loads.append(name)
        return core.load(name, **more)

    wider = 'measures = ["characters"]\n' + text.replace("[5]", "[5, 6]")
    with Study(write(tmp_path, wider), load=load) as study:
        study.run()
        assert [row["cell"]["top_k"] for row in study.rows()] == [5, 6]
        assert len((study.folder / study_runner.RESULTS).read_text("utf-8").splitlines()) == 2
        assert all(row["values"]["characters"] == len(row["text"]) for row in study.rows())
    assert loads == ["storyteller"]


def test_cancelled_study_continues_where_it_stopped(tmp_path: Path) -> None:
    path, cancel = write(tmp_path), threading.Event()

    def stop(progress: StudyProgress) -> None:
        if progress.done >= 5:
            cancel.set()

    with Study(path) as study:
        study.run(stop, cancel)
        first = dict(study._store.results)
    assert 3 <= len(first) < 32
    seen: list[StudyProgress] = []
    with Study(path) as study:
        study.run(seen.append)
        assert len(study.rows()) == 32
        assert {key: study._store.results[key] for key in first} == first
    assert seen[0].done >= len(first)
    assert seen[-1].seconds_left == 0
    assert not list((study.folder / "runs").glob(".*"))


@pytest.mark.slow
def test_study_of_many_runs_killed_at_random_equals_an_undisturbed_one(tmp_path: Path) -> None:
    """2,000 runs with recordings, killed six times at random moments, in the middle of a run or of a line."""
    names = ", ".join(f'"A tale of {number}"' for number in range(50))
    text = f"seeds = 20\n[prompts]\ntexts = [{names}]\n[settings]\nmax_new_tokens = 2\n"
    path = write(tmp_path, text + "do_sample = true\n[grid]\ntemperature = [0.5, 1.0]\n")
    undisturbed = start_study(path, tmp_path / "undisturbed")
    assert undisturbed.wait(3600) == 0
    chance, folder, kills = random.Random(int(os.environ.get("STUDY_KILL_SEED", "1"))), tmp_path / "killed", 0
    while kills < 6:
        process, begin = start_study(path, folder), line_count(folder)
        limit = begin + chance.randrange(1, 320)
        while process.poll() is None and line_count(folder) < limit:
            time.sleep(0.02)  # another process, which nothing here can signal
        time.sleep(chance.random() / 20)
        process.send_signal(signal.SIGKILL)
        kills += process.wait(60) == -signal.SIGKILL
    assert 0 < line_count(folder) < 2000
    assert start_study(path, folder).wait(3600) == 0
    whole, continued = (read_results(one) for one in (tmp_path / "undisturbed", folder))
    assert len(continued) == 2000 == len({line["key"] for line in continued})
    assert {line["key"]: line["texts"] for line in continued} == {line["key"]: line["texts"] for line in whole}
    names_of_runs = {file.name for file in (folder / "runs").iterdir()}
    assert names_of_runs == {Path(line["recording"]).name for line in whole}


def start_study(path: Path, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "decodescope", "study", str(path), "--out", str(folder), "--quiet"], cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL,
    )  # fmt: skip


def line_count(folder: Path) -> int:
    results = folder / study_runner.RESULTS
    return results.read_bytes().count(b"\n") if results.exists() else 0


def read_results(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / study_runner.RESULTS).read_text("utf-8").splitlines()]


def test_incomplete_last_line_is_removed_and_repeated(tmp_path: Path) -> None:
    path = write(tmp_path, '[prompts]\ntexts = ["Once", "Two"]\n[settings]\nmax_new_tokens = 2\n')
    with Study(path) as study:
        study.run()
        texts = [row["text"] for row in study.rows()]
    results = study.folder / study_runner.RESULTS
    results.write_bytes(results.read_bytes()[:-40])
    with Study(path) as study:
        assert len(study.rows()) == 1
        study.run()
        assert [row["text"] for row in study.rows()] == texts
    assert len(results.read_text("utf-8").splitlines()) == 2


def test_second_process_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path)
    (tmp_path / "study-results").mkdir()
    store = study_runner.StudyStore(tmp_path / "study-results")
    with pytest.raises(StudyError, match="Another process"):
        Study(path).run()
    store.close()
    assert not Study(path).rows()


def test_failed_run_is_a_row_and_is_repeated(tmp_path: Path) -> None:
    text = '[prompts]\ntexts = ["Once", "Two"]\n[settings]\nmax_new_tokens = 2\n'
    text += '[grid]\nstrategy = ["greedy", "assisted"]\n'
    with Study(write(tmp_path, text)) as study:
        study.run()
        summary = study.summary()
        assert [cell.failed for cell in summary.cells] == [0, 2]  # it has no draft model
        assert any("2 runs failed" in notice for notice in summary.notices)
        place = study.table()[0].index("error")
        assert [bool(row[place]) for row in study.table()[1:]] == [False, False, True, True]
        before = len((study.folder / study_runner.RESULTS).read_bytes().splitlines())
        study.run()
        assert len((study.folder / study_runner.RESULTS).read_bytes().splitlines()) == before + 2


def test_model_that_cannot_be_loaded_keeps_the_results(tmp_path: Path) -> None:
    path = write(
        tmp_path, 'models = ["storyteller", "missing"]\n[prompts]\ntexts = ["Once"]\n[settings]\nmax_new_tokens = 2\n'
    )
    with Study(path) as study:
        with pytest.raises(ModelNotFoundError):
            study.run()
        assert [row["model"] for row in study.rows()] == ["storyteller"]


def test_another_model_of_the_same_name_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, '[prompts]\ntexts = ["Once"]\n[settings]\nmax_new_tokens = 2\n')
    with Study(path) as study:
        study.run()
    path = write(tmp_path, '[prompts]\ntexts = ["Once", "Two"]\n[settings]\nmax_new_tokens = 2\n')
    with Study(path, load=lambda _name, **_more: core.load("storyteller-draft")) as study:
        with pytest.raises(StudyError, match="no longer the model"):
            study.run()
        assert len(study.rows()) == 1


def test_probabilities_under_another_model_are_those_of_its_scores(tmp_path: Path) -> None:
    text = 'measures = [{name = "log_probability", model = "storyteller-draft"}]\n[prompts]\ntexts = ["Once", "Two"]\n'
    with Study(write(tmp_path, text + "[settings]\nmax_new_tokens = 4\n")) as study:
        study.run()
        judge = core.load("storyteller-draft")
        for row in study.rows():
            scored = core.score(judge, row["text"], 0, given=row["prompt"])
            expected = sum(token.raw_log_probability for token in scored) / len(scored)
            assert row["values"]["log_probability[storyteller-draft]"] == pytest.approx(expected, abs=1e-4)
        study._load = None
        study.run()  # nothing is judged again
        assert len((study.folder / study_runner.JUDGED).read_text("utf-8").splitlines()) == 2


def test_text_measures_equal_hand_computed_values(tmp_path: Path) -> None:
    text = """
measures = ["characters", "words", "distinct_2", "repetition", {name = "repetition", n = 1}, "json",
  {name = "regex", pattern = "b+", title = "bs"}, "exact_match", "contains_answer"]
[answers]
pattern = "is (\\\\w+)"
ignore_case = true
[prompts]
items = [{prompt = "p", answer = ["Paris", "Rome"]}]
"""
    study = Study(write(tmp_path, text))
    (row,) = [
        {
            "text": "It is London, no: it is PARIS", "ids": [1, 2, 1, 2, 1], "answers": ["paris", "rome"],
            "extracted": "paris", "compared_text": "it is london, no: it is paris", "metrics": {},
        }
    ]  # fmt: skip
    values = {one.name: one.compute(row) for one in study.plan.measures}
    assert values == {
        "characters": 29, "words": 7, "distinct_2": 0.5, "repetition": 0.0, "repetition_1": pytest.approx(0.6),
        "json": 0, "bs": 0, "exact_match": 1, "contains_answer": 1,
    }  # fmt: skip
    from decodescope.core.studies.text_measures import extract_answer, is_json

    assert extract_answer(row["text"], study.plan.answer_pattern) == "PARIS"
    assert extract_answer("none", "is (x)") is None
    assert [is_json(one) for one in ('{"a": 1}', " 3 ", "NaN", "{", "[" * 100_000)] == [True, True, False, False, False]


def test_self_bleu_without_sacrebleu_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from decodescope.core.system import optional_deps

    monkeypatch.setattr(optional_deps, "find_spec", lambda name: None)
    with pytest.raises(StudyError, match="pip install sacrebleu"):
        Study(write(tmp_path, 'measures = ["self_bleu"]\n[prompts]\ntexts = ["a"]\n'))


@pytest.mark.skipif(find_spec("sacrebleu") is None, reason="sacrebleu is not installed")
def test_self_bleu_is_high_for_equal_texts() -> None:
    from sacrebleu import sentence_bleu

    from decodescope.core.studies.text_measures import self_bleu

    first, second, third = "the cat sat on the mat today", "the cat sat on a mat today", "dogs run in the park at night"
    found = self_bleu([first, second, third])
    assert found[0] == pytest.approx(sentence_bleu(first, [second, third]).score / 100)
    assert self_bleu([first, first]) == pytest.approx([1.0, 1.0])
    assert self_bleu([first]) == [None]


def test_plugin_measures_are_columns(tmp_path: Path) -> None:
    measure = core.measures.Measure(name="vowels", title="Vowels", help="Vowels.", compute=lambda text: float(
        sum(letter in "aeiou" for letter in text.text)))  # fmt: skip
    core.measures.registry.set_plugin_entries([measure])
    try:
        text = 'measures = ["vowels"]\n[prompts]\ntexts = ["Once"]\n[settings]\nmax_new_tokens = 4\n'
        with Study(write(tmp_path, text)) as study:
            study.run()
            (row,) = study.rows()
            assert row["values"]["vowels"] == sum(letter in "aeiou" for letter in row["text"])
    finally:
        core.measures.registry.set_plugin_entries([])


def test_captured_runs_are_added_once_as_a_cell(tmp_path: Path) -> None:
    model = core.load("storyteller")
    ids = model.tokenizer("Once upon a time, Tom", return_tensors="pt").input_ids
    with decodescope.capture(model.model, model.tokenizer) as captured:
        expected = model.model.generate(ids, max_new_tokens=5, do_sample=False)[0, ids.shape[1] :].tolist()
    with Study(write(tmp_path)) as study:
        study.add(captured, {"code": "mine"}).add(captured, {"code": "mine"})
        study.add(
            core.run(model, core.Request("Other", {"max_new_tokens": 2})), {"code": "run", "answer": "x", "seed": 4}
        )
        first, second = study.rows()
        assert first["cell"] == {"code": "mine"}
        assert (first["prompt_id"], first["answers"]) == ("1", ["the"])
        assert first["text"] == model.tokenizer.decode(expected)
        assert (second["answers"], second["seed"]) == (["x"], 4)
        assert [cell.label for cell in study.summary().cells][-2:] == ["code mine", "code run"]
        assert study.write_report(tmp_path / "a.html").exists()
        with pytest.raises(StudyError, match="capture"):
            study.add("no run", {})
        with pytest.raises(DecodescopeError):
            study.add(captured, "no factors")  # type: ignore[arg-type]
    assert len(Study(folder=study.folder).rows()) == 2


def test_pilot_tells_time_and_prompts(tmp_path: Path) -> None:
    names = ", ".join(f'"A tale of {number}"' for number in range(20))
    text = f"seeds = 5\nrecordings = false\n[precision]\nlog_probability = 0.5\n[prompts]\ntexts = [{names}]\n"
    text += '[settings]\nmax_new_tokens = 2\n[[cells]]\nstrategy = "greedy"\n[[cells]]\nstrategy = "sampling"\n'
    with Study(write(tmp_path, text)) as study:
        study.run(pilot=True)
        assert len(study.rows()) == 8 + 8 * 2
        found = study.pilot_estimate()
        assert found.runs_left == 12 + (100 - 16)
        assert found.seconds_left is not None
        deviations = [cell.estimates["log_probability"].deviation for cell in study.summary().cells]
        expected = max(8, -(-((1.959964 * max(deviations) / 0.5) ** 2) // 1))
        assert found.prompts["log_probability"] == {0.5: expected}
        assert "± 0.5" in core.studies.pilot_text(found)


def test_study_without_file_and_folder_is_refused() -> None:
    with pytest.raises(StudyError):
        Study()
