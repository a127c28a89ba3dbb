"""Files of studies: what they describe, and the message for each fault, with its line, key and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from decodescope.core.errors import StudyError
from decodescope.core.studies.study_file import find_line, parse_study, plan_jobs, read_study

PROMPTS = '[prompts]\ntexts = ["Once", "One day"]\n'


def test_study_is_the_product_of_its_factors() -> None:
    plan = parse_study(
        'seeds = 2\nmodels = ["storyteller", {model = "storyteller-draft", name = "draft"}]\n'
        'caches = ["dynamic", {cache = "sink", settings = {}}]\n'
        '[prompts]\nitems = [{q = "a", answer = 3}, {q = "b", answer = ["4", "four"]}]\n'
        'templates = {plain = "{q}", braces = "{{{q}}}"}\n'
        "[settings]\ndo_sample = true\n[grid]\ntemperature = [0.5, 1.0]\ntop_p = [0.9, 1.0]\n"
    )
    assert len(plan.cells) == 2 * 2 * 2 * 4
    assert plan.run_count == 32 * 2 * 2 == len(plan_jobs(plan))
    assert plan.cells[0].factors == {
        "model": "storyteller", "cache": "dynamic", "template": "plain", "temperature": 0.5, "top_p": 0.9,
    }  # fmt: skip
    assert plan.cells[0].settings == {"do_sample": True, "temperature": 0.5, "top_p": 0.9}
    assert [prompt.answers for prompt in plan.prompts] == [("3",), ("4", "four")]
    assert plan.prompt_of(plan.cells[4], plan.prompts[0]) == "{a}"
    assert len({job.key for job in plan_jobs(plan)}) == plan.run_count
    assert [job.cell.model.name for job in plan_jobs(plan)] == ["storyteller"] * 64 + ["draft"] * 64


def test_listed_cells_are_combined_with_the_grid() -> None:
    plan = parse_study(
        PROMPTS + '[grid]\nmax_new_tokens = [3, 5]\n[[cells]]\nstrategy = "greedy"\n[[cells]]\nstrategy = "sampling"\n'
        "temperature = 0.5\n"
    )
    assert [cell.label for cell in plan.cells] == [
        "strategy greedy, temperature default, max_new_tokens 3",
        "strategy greedy, temperature default, max_new_tokens 5",
        "strategy sampling, temperature 0.5, max_new_tokens 3",
        "strategy sampling, temperature 0.5, max_new_tokens 5",
    ]
    assert [cell.strategy for cell in plan.cells] == ["greedy", "greedy", "sampling", "sampling"]
    assert "strategy" not in plan.cells[0].settings


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p.csv", 'id,q,answer\nx,"a, b",1\ny,"c\nd",2\n'),
        ("p.tsv", 'id\tq\tanswer\nx\ta, b\t1\ny\t"c\nd"\t2\n'),
        ("p.jsonl", '{"id": "x", "q": "a, b", "answer": 1}\n\n{"id": "y", "q": "c\\nd", "answer": "2"}\n'),
    ],
)
def test_prompt_files_give_ids_variables_and_answers(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    (tmp_path / "study.toml").write_text(f'[prompts]\nfile = "{name}"\ntemplate = "Q: {{q}}"\nchat = true\n', "utf-8")
    plan = read_study(tmp_path / "study.toml")
    assert [(one.id, one.variables["q"], one.answers) for one in plan.prompts] == [
        ("x", "a, b", ("1",)), ("y", "c\nd", ("2",)),
    ]  # fmt: skip
    assert plan.prompt_of(plan.cells[0], plan.prompts[0]) == [{"role": "user", "content": "Q: a, b"}]
    assert plan.title == "study"


def test_text_file_has_a_prompt_per_line(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_bytes("\ufeffOnce\r\n\r\nOne day\r\n".encode())
    plan = parse_study('[prompts]\nfile = "p.txt"\nlimit = 5\n', tmp_path)
    assert [one.variables["prompt"] for one in plan.prompts] == ["Once", "One day"]


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        ("seeds = = 2\n", 1, "", "not valid TOML"),
        ("seeds = 2\n", 0, "", "no prompts"),
        ("sedes = 2\n" + PROMPTS, 1, "sedes", "Did you mean “seeds”?"),
        (PROMPTS + "txt = 3\n", 3, "prompts.txt", "unknown"),
        ('[prompts]\ntexts = "Once"\n', 2, "prompts.texts", "not a list of texts"),
        ("[prompts]\ntexts = []\n", 2, "prompts.texts", "no prompts"),
        ('[prompts]\ntexts = ["a"]\nfile = "b.txt"\n', 1, "prompts", "2 places"),
        ('[prompts]\ntexts = ["a"]\ntemplate = "{name}"\n', 3, "prompts.template", "no variable “name”"),
        ('[prompts]\nitems = [{q = "a"}]\n', 2, "prompts.items", "no column “prompt”"),
        ('[prompts]\nitems = [{q = "a"}, {r = "b"}]\ntemplate = "{q}"\n', 2, "prompts.items", "Prompt 2"),
        ('[prompts]\nitems = [{prompt = "a", id = "1"}, {prompt = "b", id = 1}]\n', 2, "prompts.items", "the id “1”"),
        ("seeds = []\n" + PROMPTS, 1, "seeds", "number of seeds"),
        ("seeds = [1, -1]\n" + PROMPTS, 1, "seeds", "whole numbers"),
        ("seeds = 9999999\n" + PROMPTS, 1, "seeds", "runs, more than"),
        (PROMPTS + "[settings]\ntemprature = 1.0\n", 4, "settings.temprature", "Did you mean “temperature”?"),
        (PROMPTS + '[settings]\ntemperature = "hot"\n', 4, "settings.temperature", "hot"),
        (PROMPTS + "[grid]\ntop_p = [0.5, 7.0]\n", 4, "grid.top_p", "7"),
        (PROMPTS + "[grid]\ntop_p = 0.5\n", 4, "grid.top_p", "not a list"),
        (PROMPTS + "[grid]\ntop_p = [0.5, 0.5]\n", 3, "grid", "exists twice"),
        (PROMPTS + '[grid]\nstrategy = ["gredy"]\n', 4, "grid.strategy", "Did you mean “greedy”?"),
        (PROMPTS + "[[cells]]\ntop_k = 5\n[[cells]]\ntop_k = -5\n", 6, "cells.top_k", "-5"),
        ('caches = ["dynamc"]\n' + PROMPTS, 1, "caches", "Did you mean “dynamic”?"),
        ("models = []\n" + PROMPTS, 1, "models", "no models"),
        ('models = ["a", "a"]\n' + PROMPTS, 1, "models", "called “a”"),
        ('engines = ["here"]\n' + PROMPTS, 1, "engines", "not an address"),
        ('engines = ["http://h:1/v1"]\nin_flight = 0\n' + PROMPTS, 2, "in_flight", "1 to 256"),
        ('measures = ["lenght"]\n' + PROMPTS, 1, "measures.name", "Did you mean “length”?"),
        ('measures = ["exact_match"]\n' + PROMPTS, 1, "measures", "no column with right answers|needs right answers"),
        ('measures = [{name = "regex", pattern = "("}]\n' + PROMPTS, 1, "measures.pattern", "invalid"),
        ('measures = [{name = "regex"}]\n' + PROMPTS, 1, "measures.name", "no pattern"),
        ('measures = ["distinct_2_adjusted"]\n' + PROMPTS, 1, "measures.name", "not available"),
        ('measures = ["length", "length"]\n' + PROMPTS, 1, "measures", "called “length”"),
        (PROMPTS + "[precision]\nlengt = 3\n", 4, "precision.lengt", "Did you mean “length”?"),
        ('best_of = "x"\n' + PROMPTS, 1, "best_of", "no measure"),
        ("baseline = {top_p = 1.0}\n" + PROMPTS, 1, "baseline.top_p", "does not differ"),
        ("baseline = {top_p = 0.7}\n" + PROMPTS + "[grid]\ntop_p = [0.5, 1.0]\n", 1, "baseline", "0 cells match"),
        (PROMPTS + '[answers]\npattern = "("\n', 4, "answers.pattern", "invalid"),
        ('title = 3\n' + PROMPTS, 1, "title", "not a text"),
    ],
)  # fmt: skip
def test_fault_is_named_with_line_key_and_remedy(text: str, line: int, key: str, words: str) -> None:
    with pytest.raises(StudyError, match=words) as caught:
        parse_study(text)
    assert (caught.value.line, caught.value.key) == (line, key)
    assert caught.value.remedy
    assert "study.toml" in caught.value.cause


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("p.jsonl", b'{"prompt": "a"}\n{"prompt": \n', 2),
        ("p.jsonl", b'{"prompt": "a"}\n[1]\n', 2),
        ("p.csv", b"prompt,answer\na,1\nb\n", 3),
        ("p.csv", b"prompt,prompt\na,1\n", 1),
        ("p.csv", b'prompt\n"a\n', 2),
        ("p.txt", b"a\n\xff\n", 2),
        ("p.doc", b"a", 0),
    ],
)
def test_fault_of_a_prompt_file_is_named_with_its_line(tmp_path: Path, name: str, content: bytes, line: int) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(StudyError) as caught:
        parse_study(f'[prompts]\nfile = "{name}"\n', tmp_path)
    assert caught.value.line == line
    assert caught.value.remedy


def test_missing_files_are_named(tmp_path: Path) -> None:
    for call in (
        lambda: read_study(tmp_path / "no.toml"),
        lambda: parse_study('[prompts]\nfile = "no.csv"\n', tmp_path),
    ):
        with pytest.raises(StudyError, match="cannot be read"):
            call()


def test_line_of_a_key_is_found_in_its_table() -> None:
    text = "a = 1\n[grid]\na = [2]\n[[cells]]\na = 1\n[[cells]]\nb = 1\na = 2\n"
    assert [find_line(text, "a"), find_line(text, "grid.a"), find_line(text, "cells.a", 1)] == [1, 3, 8]
    assert find_line(text, "cells.a", 0) == 5
    assert find_line(text, "missing") == 0


@pytest.mark.parametrize("prompts", [Path("/dev/zero"), None], ids=["device", "folder"])
def test_prompts_from_what_is_no_regular_file_are_refused(prompts: Path | None, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(f'[prompts]\nfile = "{prompts or tmp_path}"\n', encoding="utf-8")
    with pytest.raises(StudyError, match="not a regular file"):
        read_study(path)
    with pytest.raises(StudyError, match="not a regular file"):
        read_study(prompts or tmp_path)
