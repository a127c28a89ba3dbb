"""Lessons: every sentence is true for its run, in both languages, and the sheet shows what the class did."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from decodescope.app.features.tours.state import Lesson, evaluate_guess, find_lesson, load_lessons
from decodescope.app.features.tours.state.tour_file import read_lesson
from decodescope.app.features.tours.store import FILE, ClassRecords, GuessRecord, LessonRun, make_sheet
from decodescope.resources import language
from tests.app.test_tours import Maker, check_tour
from tests.app.tour_figures import CHECKS
from tests.long import every

LESSONS = ("token", "temperature", "likeliest", "beams", "drafts", "memory")
CASES = [(name, code) for code in ("en", "zh_CN") for name in LESSONS]
WITHOUT_EFFECT = {("drafts", "zh_CN"): 1, ("beams", "zh_CN"): 2}
"""Steps that show their other sentence with the bundled models: drafts from the text, and words without spaces."""


@pytest.fixture(scope="module")
def maker() -> Maker:
    return Maker()


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    yield
    language.set_language(language.ENGLISH)


def lesson_of(name: str, code: str) -> Lesson:
    """Return a lesson with the runs of a language, and English sentences."""
    language.set_language(code)
    lesson = find_lesson(name)
    language.set_language(language.ENGLISH)
    return lesson


def test_six_lessons_are_valid_in_every_language() -> None:
    for code in language.LANGUAGES:
        language.set_language(code)
        lessons, problems = load_lessons()
        assert not problems
        assert tuple(lesson.name for lesson in lessons) == LESSONS
        for lesson in lessons:
            stages = [step.stage for step in lesson.steps]
            assert list(dict.fromkeys(stages)) == ["Question", "Guess", "Run", "Explanation", "Take home"]
            assert all(step.notes for step in lesson.steps[2:-1])
            assert all(("chinese" in run.model) == (code == "zh_CN") for run in lesson.runs.values())


@pytest.mark.parametrize(("name", "code"), every(4, CASES))
def test_lesson_sentences_match_their_runs(name: str, code: str, maker: Maker) -> None:
    lesson = lesson_of(name, code)
    effects = check_tour(lesson, maker)
    unseen = [n - 2 for n, appears in enumerate(effects) if not appears]
    assert unseen == ([WITHOUT_EFFECT[name, code]] if (name, code) in WITHOUT_EFFECT else [])
    runs = {run: maker.run(setting) for run, setting in lesson.runs.items()}
    guess = lesson.steps[1].guess
    assert guess is not None
    answer, shares = evaluate_guess(guess, runs)
    if guess.figure is not None:
        value = CHECKS[guess.figure.measure](*(runs[str(of)].events for of in guess.figure.of))
        assert answer == sum(value >= bound for bound in guess.below)
    else:
        token = runs[guess.run].tokens[0]
        assert answer is not None
        assert guess.choices[answer] == token.piece
        assert shares[answer][0] == token.probability


@pytest.mark.slow
@pytest.mark.parametrize(("name", "code"), CASES)
def test_lesson_sentences_match_changed_runs(name: str, code: str, maker: Maker) -> None:
    """With other seeds and shorter texts a sentence may be the other one, and is true."""
    lesson = lesson_of(name, code)
    for length in (6, 25):
        runs = {
            run: replace(setting, seed=setting.seed + 9, parameters={**setting.parameters, "max_new_tokens": length})
            for run, setting in lesson.runs.items()
        }
        check_tour(replace(lesson, runs=runs), maker)


def test_guess_about_missing_figure_has_last_choice() -> None:
    guess = lesson_of("likeliest", "en").steps[1].guess
    assert guess is not None
    assert evaluate_guess(guess, {}).answer == 3


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [("below = [1.2, 3.0, 6.0]", "below = [3.0, 1.2, 6.0]", "rising"), ("[[home]]", "[[house]]", "house"),
     ('figure = ["letters_a_token", "story"]', 'figure = ["letters", "story"]', "letters"),
     ("[guess]\n", "[guess]\nspeed = 1\n", "speed"), ('run = "story"\nfigure', 'run = "plain"\nfigure', "plain")],
)  # fmt: skip
def test_invalid_lesson_file_is_reported_with_reason(tmp_path: Path, old: str, new: str, reason: str) -> None:
    from decodescope import resources

    text = resources.path("lessons", "token.toml").read_text(encoding="utf-8")
    assert old in text
    (tmp_path / "token.toml").write_text(text.replace(old, new), encoding="utf-8")
    lessons, problems = load_lessons(tmp_path)
    assert lessons == ()
    assert reason in problems[0].cause
    with pytest.raises(type(problems[0])):
        read_lesson(tmp_path / "token.toml")


def records_of_a_class(path: Path) -> ClassRecords:
    """Return what a class did in all lessons."""
    records = ClassRecords(path)
    for lesson in load_lessons()[0]:
        record = records.begin(lesson.name)
        record.is_done = True
        record.guess = GuessRecord(
            "Which one?", ["<one>", "two", "three", "four"], [12, 7, 0, 3], True, ["40 %", "20 %", "–", "1 %"], 1
        )
        words = [[f" word{n}", "50 %"] for n in range(80)]
        for _ in range(2):
            record.runs.append(LessonRun("Sampling · Temperature 0.3", "Once upon a time", words, " word" * 200))
        record.sentences = ["This was seen."] * 4
    records.room.append(GuessRecord("", ["a", "b", "c", "d"], [1, 2, 3, 4], True, ["1 %"] * 4, 0, "Once upon a"))
    return records


def test_records_of_a_class_are_kept(tmp_path: Path) -> None:
    records = records_of_a_class(tmp_path / FILE)
    records.save()
    again = ClassRecords(tmp_path / FILE)
    assert (again.lessons, again.room) == (records.lessons, records.room)
    assert again.done == set(LESSONS)
    assert again.begin("token").is_done, "a lesson stays done when it is repeated"
    again.clear()
    assert not ClassRecords(tmp_path / FILE).has_runs


@pytest.mark.parametrize("content", ["{", "[]", '{"lessons": {"token": {"runs": 3}}}', '{"lessons": {"token": []}}'])
def test_damaged_records_count_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content, encoding="utf-8")
    assert not ClassRecords(tmp_path / FILE).has_runs


@pytest.mark.parametrize("code", ["en", "zh_CN"])
def test_sheet_shows_runs_votes_and_answers(tmp_path: Path, code: str) -> None:
    language.set_language(code)
    lessons, records = load_lessons()[0], records_of_a_class(tmp_path / FILE)
    page = make_sheet(lessons, records)
    assert f'lang="{code.replace("_", "-")}"' in page
    assert page.count("<section") == len(LESSONS) + 2, "a page for each lesson, the guessing game and the teacher"
    pupils, teacher = page.split('<section class="teacher">')
    for lesson in lessons:
        for home in lesson.home:
            assert language.tr(home.question) in pupils
            assert language.tr(home.answer) in teacher
            assert language.tr(home.answer) not in pupils
    assert "&lt;one&gt;" in page
    assert "<one>" not in page
    assert pupils.count('<td class="n">12</td>') == len(LESSONS)
    assert "<b> word3</b>" in pupils
    assert teacher.count("This was seen.") == 4 * len(LESSONS)
    assert "http" not in page


@pytest.mark.slow
@pytest.mark.parametrize("code", ["en", "zh_CN"])
def test_sheet_prints_one_page_for_each_lesson(tmp_path: Path, needs_chromium: str, code: str) -> None:
    language.set_language(code)
    sheet, pdf = tmp_path / "sheet.html", tmp_path / "sheet.pdf"
    records = records_of_a_class(tmp_path / FILE)
    sheet.write_text(make_sheet(load_lessons()[0], records), encoding="utf-8")
    line = [needs_chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
    subprocess.run([*line, f"--print-to-pdf={pdf}", str(sheet)], check=True, timeout=120, capture_output=True)
    pages = len(re.findall(rb"/Type /Page\b", pdf.read_bytes()))
    assert len(LESSONS) + 2 <= pages <= len(LESSONS) + 3, "the answers may need two pages"
