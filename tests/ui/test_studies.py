"""Tools › Studies: the form and the text, runs that are stopped and continued, and pages of results."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from PySide6.QtCore import QEventLoop, QPointF, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QMessageBox
from pytestqt.qtbot import QtBot

from decodescope.app.features.studies import state
from decodescope.app.features.studies.panel import StudyDialog
from decodescope.app.features.studies.session import StudyJobs
from decodescope.app.features.studies.view.setup_page import ComboItem
from decodescope.app.window.main_window import MainWindow
from decodescope.core import studies
from tests.ui.accessibility_tree import faults, read_tree
from tests.ui.layout import remaining
from tests.ui.study_files import write_results, write_study

WAIT_MS = 60_000
PAGES = ("study", "cells", "runs", "chart", "map", "texts", "answers")


def jobs_of(window: MainWindow) -> StudyJobs:
    return window.parts.services.studies.jobs()


def opened(qtbot: QtBot, window: MainWindow, path: Path | None = None) -> StudyDialog:
    """The window of studies with a study whose text and results have been read."""
    dialog = window.parts.studies.open()
    jobs = jobs_of(window)
    if path is not None:
        window.parts.studies.open_file(str(path))
    qtbot.waitUntil(lambda: jobs.is_checked, timeout=WAIT_MS)
    if path is not None and path.with_name(f"{path.stem}-results").is_dir():
        qtbot.waitUntil(lambda: jobs.results is not None, timeout=WAIT_MS)
    return dialog


@pytest.fixture(scope="module")
def finished(shared: MainWindow, tmp_path_factory: pytest.TempPathFactory) -> StudyDialog:
    """A finished study of eight prompts, six cells and three seeds, in a window that the tests share."""
    path, loop = write_study(tmp_path_factory.mktemp("full")), QEventLoop()
    write_results(path)
    dialog = shared.parts.studies.open()
    jobs = jobs_of(shared)
    jobs.resultsChanged.connect(lambda: jobs.results is not None and loop.quit())
    QTimer.singleShot(WAIT_MS, loop.quit)
    shared.parts.studies.open_file(str(path))
    loop.exec()
    assert jobs.results is not None
    for page in PAGES:
        dialog.show_page(page)
    return dialog


@pytest.fixture
def full(finished: StudyDialog) -> StudyDialog:
    """The finished study, as after it was opened."""
    finished.show_message("")
    finished.runs.search.clear()
    finished.runs.show_cell("")
    return finished


def wait_for_check(qtbot: QtBot, window: MainWindow) -> None:
    qtbot.waitUntil(lambda: jobs_of(window).is_checked, timeout=WAIT_MS)


# --- form and text


def test_changed_form_changes_only_its_keys_of_the_text(qtbot: QtBot, window: MainWindow) -> None:
    dialog = opened(qtbot, window)
    form, editor = dialog.setup.form, dialog.setup.editor
    before = editor.toPlainText()
    assert before.startswith("# ")
    form.settings._rows[-1][2].setText("0.2, 0.4")
    form.settings._rows[-1][2].editingFinished.emit()
    form.seeds.setText("5")
    form.seeds.editingFinished.emit()
    form.measures["self_bleu"].click()
    form.chat.click()
    after = editor.toPlainText()
    table, old = tomllib.loads(after), tomllib.loads(before)
    assert table["grid"] == {"temperature": [0.2, 0.4]}
    assert table["seeds"] == 5
    assert table["measures"] == [*old["measures"], "self_bleu"]
    assert table["prompts"] == {**old["prompts"], "chat": True}
    assert after.split("\n")[0] == before.split("\n")[0]
    wait_for_check(qtbot, window)
    assert len(jobs_of(window).plan.cells) == 2


def test_setting_with_one_value_leaves_the_grid(qtbot: QtBot, window: MainWindow) -> None:
    dialog = opened(qtbot, window)
    rows = dialog.setup.form.settings
    rows.add_button.click()
    _row, combo, field = rows._rows[-1]
    combo.setCurrentIndex(combo.findData("top_k"))
    combo.activated.emit(combo.currentIndex())
    field.setText("10, 40")
    field.editingFinished.emit()
    rows._rows[2][2].setText("0.7")
    rows._rows[2][2].editingFinished.emit()
    table = tomllib.loads(dialog.setup.editor.toPlainText())
    assert table["grid"] == {"top_k": [10, 40]}
    assert table["settings"] == {"do_sample": True, "max_new_tokens": 24, "temperature": 0.7}


def test_typed_text_is_shown_in_the_form_and_faults_name_their_line(qtbot: QtBot, window: MainWindow) -> None:
    dialog = opened(qtbot, window)
    setup = dialog.setup
    setup.editor.setPlainText('seeds = 3\n[prompts]\ntexts = ["One", "Two"]\n[settings]\ntemprature = 1.0\n')
    setup.flush()
    wait_for_check(qtbot, window)
    assert "temprature" in setup.problem.text()
    assert "temperature" in setup.problem.text()  # what was meant
    assert "line 5" in setup.problem.text()
    assert not dialog.run_button.isEnabled()
    setup.go_to.click()
    assert setup.editor.textCursor().blockNumber() == 4
    assert setup.form.seeds.text() == "3"
    assert setup.form.texts.toPlainText() == "One\nTwo"
    setup.editor.setPlainText("seeds = [")
    setup.flush()
    wait_for_check(qtbot, window)
    assert not setup.form.page.isEnabled()
    setup.editor.setPlainText('seeds = 2\n[prompts]\ntexts = ["One"]\n')
    setup.flush()
    wait_for_check(qtbot, window)
    assert setup.form.page.isEnabled()
    assert setup.problem.isHidden()
    assert "1 cells × 1 prompts × 2 seeds" in setup.size_label.text()
    assert dialog.run_button.isEnabled()


def test_typed_prompts_engines_and_file_become_keys(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    dialog = opened(qtbot, window)
    form = dialog.setup.form
    form.texts.setPlainText("First\n\nSecond\n")
    form.engines.setPlainText("http://127.0.0.1:1/v1\nhttp://127.0.0.1:2/v1\n")
    dialog.setup.flush()
    form.in_flight.setValue(8)
    table = tomllib.loads(dialog.setup.editor.toPlainText())
    assert table["prompts"]["texts"] == ["First", "Second"]
    assert table["engines"] == ["http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"]
    assert table["in_flight"] == 8
    assert "models" not in table  # the engines took the place of the usual model
    file = tmp_path / "prompts.csv"
    file.write_text("question,answer\nOne and one?,2\nTwo and two?,4\n", "utf-8")
    form._emit_file(str(file))
    form.template.setText("{question} It is")
    form.template.editingFinished.emit()
    table = tomllib.loads(dialog.setup.editor.toPlainText())
    assert table["prompts"] == {"file": file.as_posix(), "template": "{question} It is"}
    wait_for_check(qtbot, window)
    assert [form.answer.itemData(n) for n in range(form.answer.count())] == ["", "question", "answer"]
    assert jobs_of(window).plan.prompts[1].answers == ("4",)


def test_models_caches_and_comparison_are_chosen_in_the_form(qtbot: QtBot, window: MainWindow) -> None:
    dialog = opened(qtbot, window)
    form = dialog.setup.form
    form.show_models([ComboItem("Storyteller", "storyteller"), ComboItem("Small", "tiny")])
    form.models.add_button.click()
    combo = form.models._rows[-1][1]
    combo.setCurrentIndex(combo.findData("tiny"))
    combo.activated.emit(combo.currentIndex())
    form.caches.add_button.click()
    combo = form.caches._rows[-1][1]
    combo.setCurrentIndex(combo.findData("sliding_window"))
    combo.activated.emit(combo.currentIndex())
    form.judge.setCurrentIndex(form.judge.findData("tiny"))
    form.judge.activated.emit(form.judge.currentIndex())
    wait_for_check(qtbot, window)
    place = form.baseline.findData("model tiny, temperature 1")
    form.baseline.setCurrentIndex(place)
    form.baseline.activated.emit(place)
    table = tomllib.loads(dialog.setup.editor.toPlainText())
    assert table["models"] == ["storyteller", "tiny"]
    assert table["caches"] == ["sliding_window"]
    assert table["measures"][-1] == {"name": "log_probability", "model": "tiny"}
    assert table["baseline"] == {"model": "tiny", "temperature": 1.0}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0.5, 1.0", [0.5, 1.0]), ("greedy, sampling", ["greedy", "sampling"]), ("true", [True]),
        ("[1, 2]", [[1, 2]]), ('"a, b"', ["a, b"]), ("5", [5]), ("int8, 3", ["int8", 3]),
    ],
)  # fmt: skip
def test_typed_values_are_read_and_shown_alike(text: str, values: list[object]) -> None:
    assert state.parse_values(text) == values
    assert state.parse_values(state.values_text(values)) == values


# --- results


def test_cells_are_sorted_by_any_column_and_show_intervals(full: StudyDialog) -> None:
    full.show_page("cells")
    table, model = full.cells.table, full.cells.table.table_model
    assert model.rowCount() == 6
    place = [column.title for column in model.columns].index("log_probability")
    head = table.horizontalHeader()
    head.sectionClicked.emit(place)
    means = [row.cells[place].value for row in model.rows]
    assert means == sorted(means, reverse=True)
    head.sectionClicked.emit(place)
    assert [row.cells[place].value for row in model.rows] == sorted(means)
    assert all(row.cells[place].note.startswith("[") for row in model.rows)
    assert "The unit is the prompt" in full.cells.note.text()
    full.cells.kind.button("differences").click()
    assert model.rowCount() == 5  # not the baseline
    assert any("p " in cell.note for cell in model.rows[0].cells)
    assert "Holm over 5 comparisons" in full.cells.note.text()


def test_fewer_than_eight_prompts_have_points_only(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    path = write_study(tmp_path, prompts=4)
    write_results(path)
    dialog = opened(qtbot, window, path)
    dialog.show_page("cells")
    rows = dialog.cells.table.table_model.rows
    assert all(cell.note == "" for row in rows for cell in row.cells)
    assert "Fewer than 8 prompts: points only" in dialog.cells.note.text()
    assert any("they need 8" in line for line in [dialog.notices.text()])


def test_runs_are_filtered_by_cell_and_letters_and_failed_ones_say_why(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    path = write_study(tmp_path)
    write_results(path, failed=2, left=40)
    dialog = opened(qtbot, window, path)
    dialog.show_page("runs")
    model = dialog.runs.table.table_model
    assert model.rowCount() == 144 - 40
    dialog.runs.search.setText("lily")
    assert 0 < model.rowCount() < 30
    dialog.runs.search.setText("longer than the context")
    assert model.rowCount() == 2
    dialog.runs.table.selectRow(0)
    dialog.runs.table.rowClicked.emit(dialog.runs.table.current_key)
    assert "Shorten it" in dialog.runs.text.toPlainText()
    dialog.runs.search.clear()
    dialog.runs.show_cell("temperature 0.5, top_p 0.8")
    assert {row.cells[1].text for row in model.rows} == {"0.5"}
    assert dialog.run_button.text() == "Continue"
    assert "2 failed" in dialog.state_label.text()


def test_click_on_a_run_shows_its_recording_in_the_window(qtbot: QtBot, shared: MainWindow, full: StudyDialog) -> None:
    full.show_page("runs")
    with qtbot.waitSignal(shared.session.runShown, timeout=WAIT_MS):
        full.runs.table.rowClicked.emit(full.runs.table.table_model.rows[0].key)
    assert shared.session.run is not None
    assert shared.session.run.length > 0
    assert full.message.isHidden()
    full.runs.table.rowClicked.emit(full.runs.table.table_model.rows[5].key)  # it has no recording
    assert "no recording" in full.message.text()


def test_points_and_heat_map_lead_to_the_runs_of_their_cell(qtbot: QtBot, full: StudyDialog) -> None:
    full.resize(1100, 760)
    full.show_page("chart")
    plot = full.chart.plot
    assert len(plot.data.curves) == 2
    box, text, cell = plot.parts()[0]
    assert "temperature 0.5" in text
    assert "[" in text
    QTest.mouseClick(plot, Qt.MouseButton.LeftButton, pos=box.center().toPoint())
    assert full.page == "runs"
    assert full.runs.cell.currentData() == cell
    full.show_page("map")
    heat = full.map.map
    assert len(heat.parts()) == 6
    heat.setFocus()
    QTest.keyClick(heat, Qt.Key.Key_Down)
    QTest.keyClick(heat, Qt.Key.Key_Down)
    QTest.keyClick(heat, Qt.Key.Key_Right)
    QTest.keyClick(heat, Qt.Key.Key_Return)
    assert full.runs.cell.currentData() == "temperature 1, top_p 1"
    assert heat.part_at(QPointF(-5, -5)) is None


def test_map_is_refused_with_the_remedy_for_one_setting(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    path = write_study(tmp_path)
    path.write_text(
        path.read_text("utf-8").replace("top_p = [0.8, 1.0]\n", "").replace(", top_p = 1.0", ""), encoding="utf-8"
    )
    write_results(path)
    dialog = opened(qtbot, window, path)
    dialog.show_page("map")
    assert dialog.map.map.isHidden()
    assert "needs two settings" in dialog.map.empty.text()


def test_texts_of_a_prompt_stand_side_by_side(qtbot: QtBot, shared: MainWindow, full: StudyDialog) -> None:
    full.show_page("texts")
    assert len(full.texts.cards) == 18
    assert full.texts.shown_prompt.text() == "Lily has a dog. One day, the"
    with qtbot.waitSignal(shared.session.runShown, timeout=WAIT_MS):
        QTest.keyClick(full.texts.cards[0], Qt.Key.Key_Return)
    full.texts.next.click()
    assert full.texts.shown_prompt.text() == "Tom has a cat. One day, the"


def test_right_answers_have_curves_majorities_and_votes(full: StudyDialog) -> None:
    full.show_page("answers")
    page = full.answers
    assert [curve.points[-1].label for curve in page.plot.data.curves] == ["3"] * 6
    first = page.plot.data.curves[0]
    assert first.points[0].estimate.mean <= first.points[-1].estimate.mean
    page.kind.button("best").click()
    assert len(page.plot.data.curves) == 6
    page.kind.button("majority").click()
    assert page.table.table_model.rowCount() == 6
    assert "votes again" in page.note.text()
    page.kind.button("votes").click()
    assert page.table.table_model.rowCount() == 48


def test_csv_and_report_are_written(full: StudyDialog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = iter((tmp_path / "table.csv", tmp_path / "report.html"))

    def choose(dialog: QFileDialog) -> None:
        dialog.fileSelected.emit(str(next(chosen)))
        dialog.deleteLater()

    monkeypatch.setattr(QFileDialog, "open", choose)
    full.csvRequested.emit()
    full.reportRequested.emit()
    assert (tmp_path / "table.csv").read_text("utf-8").count("Lily has a dog") == 18
    report = (tmp_path / "report.html").read_text("utf-8")
    assert "Temperature and top-p" in report
    assert "temperature = [0.5, 1.0, 1.5]" in report


# --- files


def test_unsaved_text_is_there_after_a_restart(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    dialog = opened(qtbot, window)
    dialog.setup.editor.setPlainText('seeds = 9\n[prompts]\ntexts = ["Kept"]\n')
    window.parts.studies.close()
    window.parts.services.studies.close()
    again = StudyJobs(lambda: window.parts.store.data_folder)
    assert again.text.startswith("seeds = 9")
    assert again.path is None
    again.stop_and_wait()


def test_other_study_replaces_unsaved_changes_only_after_confirmation(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    dialog = opened(qtbot, window)
    dialog.setup.editor.setPlainText('seeds = 9\n[prompts]\ntexts = ["Kept"]\n')
    window.parts.studies.open_file(str(write_study(tmp_path)))
    box = dialog.findChild(QMessageBox, "leaveStudy")
    assert box is not None
    assert jobs_of(window).text.startswith("seeds = 9")
    next(button for button in box.buttons() if button.text() == "Leave them").click()
    assert "animal" in jobs_of(window).text
    assert dialog.title.text() == "animals.toml"


def test_file_that_cannot_be_read_is_refused_with_the_reason(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    dialog = opened(qtbot, window)
    before = jobs_of(window).text
    for name in ("missing.toml", "folder.toml", "binary.toml"):
        window.parts.studies.open_file(str(tmp_path / name))
        assert name in dialog.message.text()
        assert jobs_of(window).text == before


# --- runs


def test_study_is_run_stopped_continued_and_opened_in_the_window(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    path = tmp_path / "short.toml"
    path.write_text(
        'seeds = 20\nmeasures = ["length"]\n[prompts]\ntexts = ["Once", "One day"]\n'
        "[settings]\ndo_sample = true\nmax_new_tokens = 3\n[grid]\ntemperature = [0.5, 1.0]\n",
        "utf-8",
    )
    dialog, jobs = opened(qtbot, window, path), jobs_of(window)
    dialog.run_button.click()
    qtbot.waitUntil(lambda: jobs.progress is not None and jobs.progress.done >= 3, timeout=WAIT_MS)
    assert dialog.run_button.text() == "Stop"
    window.parts.studies.open_file(str(write_study(tmp_path)))
    assert "running" in dialog.message.text()
    with qtbot.waitSignal(jobs.ended, timeout=WAIT_MS):
        QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert dialog.isVisible()
    qtbot.waitUntil(lambda: jobs.results is not None and bool(jobs.results.rows), timeout=WAIT_MS)
    results = path.with_name("short-results") / "results.jsonl"
    kept = results.read_text("utf-8")
    assert 3 <= kept.count("\n") < 80
    qtbot.waitUntil(lambda: dialog.run_button.text() == "Continue", timeout=WAIT_MS)
    with qtbot.waitSignal(jobs.ended, timeout=WAIT_MS):
        dialog.run_button.click()
    lines = results.read_text("utf-8").splitlines()
    assert results.read_text("utf-8").startswith(kept)
    assert len(lines) == len({json.loads(line)["key"] for line in lines}) == 80
    qtbot.waitUntil(lambda: dialog.run_button.text() == "Finished", timeout=WAIT_MS)
    dialog.show_page("runs")
    with qtbot.waitSignal(window.session.runShown, timeout=WAIT_MS):
        dialog.runs.table.rowOpened.emit(dialog.runs.table.table_model.rows[0].key)
    assert window.session.run.outcome is not None


@pytest.mark.slow
def test_pilot_of_a_new_study_is_saved_and_tells_time_and_prompts(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    dialog, jobs = opened(qtbot, window), jobs_of(window)
    dialog.setup.editor.setPlainText(
        'title = "Two words"\nseeds = 4\nmeasures = ["length"]\nprecision = { length = 0.1 }\n[prompts]\n'
        'texts = ["Once", "One"]\n[settings]\nmax_new_tokens = 2\ndo_sample = true\n'
    )
    with qtbot.waitSignal(jobs.ended, timeout=WAIT_MS):
        dialog.pilot_button.click()
    assert jobs.path == jobs.home / "two-words.toml"
    qtbot.waitUntil(lambda: jobs.results is not None and jobs.results.run_count == 4, timeout=WAIT_MS)
    assert "4 runs are left" in dialog.notices.text()
    assert dialog.run_button.text() == "Continue"


def test_failing_model_is_named_and_the_study_goes_on_after_closing_its_window(
    qtbot: QtBot, window: MainWindow, tmp_path: Path
) -> None:
    path = tmp_path / "none.toml"
    path.write_text('models = ["no-such-model"]\n[prompts]\ntexts = ["Once"]\n', "utf-8")
    dialog, jobs = opened(qtbot, window, path), jobs_of(window)
    with qtbot.waitSignal(jobs.ended, timeout=WAIT_MS):
        dialog.run_button.click()
        with qtbot.waitSignal(dialog.destroyed, timeout=WAIT_MS):
            dialog.close()
    assert "no-such-model" in window.parts.centre.notice_banner.cause.text()
    assert "no-such-model" in window.parts.studies.open().message.text()


# --- layout


@pytest.mark.parametrize("size", [(900, 600), (1280, 800)])
def test_pages_are_not_clipped_and_their_controls_have_names(full: StudyDialog, size: tuple[int, int]) -> None:
    full.resize(*size)
    for page in PAGES:
        full.show_page(page)
        assert remaining(full) == [], page
        assert faults(read_tree(full)) == [], page


def test_plots_of_many_values_have_few_ticks() -> None:
    from decodescope.app.features.studies.view.study_plots import ticks

    for low, high in ((0.0, 1.0), (-2.31, -1.9), (1e-9, 3e-9), (5.0, 5.0), (-1e6, 1e7)):
        found = ticks(low, high, 5)
        assert 1 <= len(found) <= 6
        assert all(low - 1e-12 <= value <= high + 1e-12 or low == high for value in found)


def test_summary_without_factors_has_one_curve(tmp_path: Path) -> None:
    plan = studies.parse_study('[prompts]\ntexts = ["One"]\n')
    summary = studies.Study.from_plan(plan, tmp_path / "none").summary()
    assert state.factor_names(summary) == []
    assert state.plot_of(summary, summary.measures[0], "").curves == ()


def test_study_waits_until_the_window_has_loaded_its_model(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialog, jobs = opened(qtbot, window, write_study(tmp_path)), jobs_of(window)
    started = list[bool]()
    monkeypatch.setattr(jobs, "start", lambda *_given, **_more: started.append(True))
    monkeypatch.setattr(window.session, "_state", "loading")
    dialog.run_button.click()
    assert started == []
    assert "Waiting" in dialog.state_label.text()
    monkeypatch.setattr(window.session, "_state", "idle")
    window.session.stateChanged.emit("idle")
    assert started == [True]
