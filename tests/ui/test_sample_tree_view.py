"""Several samples in the tree view: one tree of all texts, its nodes, the list of texts, and the command."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QPushButton, QSpinBox
from pytestqt.qtbot import QtBot

from decodescope.app.state.run import Run
from decodescope.app.state.sample_tree import ROOT
from decodescope.app.state.worker_messages import Outcome, RunRequest
from decodescope.app.theme.theme import theme_for
from decodescope.app.views.compare.view import CompareView
from decodescope.app.views.node_reports import NodeReport
from decodescope.app.views.tree.sample_content import LENGTH, NUMBER, TEXT
from decodescope.app.views.tree.view import TreeView
from decodescope.app.window.main_window import MainWindow
from decodescope.core.events import Finished, Metrics, SequenceFinished
from tests.ui import layout
from tests.ui.fake_engine import STORY, ScriptedEngine
from tests.ui.scripted import make_run, started, story, token
from tests.ui.windows import WAIT_MS, find, open_window, show_widget

TEXTS = ((" a", " red", " fox"), (" a", " red", " owl"), (" a", " blue", " hen"), (" the", " end"))


class TreeViewSession:
    """Handles the view's signals as the session does."""

    def __init__(self, view: TreeView, run: Run) -> None:
        self.view, self.run = view, run
        self.reports: list[NodeReport | None] = []
        view.signals.sequenceActivated.connect(self.show)
        view.signals.tokenActivated.connect(self.select)
        view.signals.reportSelected.connect(self.reports.append)
        view.show_run(run)

    def show(self, number: int) -> None:
        self.run.show_sequence(number)
        self.view.selection_changed(self.run)
        self.view.cursor_moved(self.run)

    def select(self, place: int) -> None:
        if self.run.select(place):
            self.view.selection_changed(self.run)

    def move(self, count: int) -> None:
        self.run.move_cursor(count)
        self.view.cursor_moved(self.run)


def samples_run(ended: bool = True) -> Run:
    run = Run(RunRequest("Once", strategy="sampling", options={"seed_each": True}, seed=40))
    run.apply([started(sequences=len(TEXTS))])
    for step in range(3):
        for number, text in enumerate(TEXTS):
            if step < len(text):
                run.apply([token(step, text[step], 0.5, sequence=number)])
            if step == len(text) - 1:
                run.apply([SequenceFinished(number, "eos")])
    if ended:
        run.apply([Finished("completed", ((),), ("",), Metrics())])
    return run


@pytest.fixture
def view(qtbot: QtBot) -> TreeView:
    return show_widget(qtbot, TreeView(), 1100, 700, "dark")


def labels(view: TreeView) -> dict[int, str]:
    return {n: node.label for n, node in view.canvas.canvas_state.scene.model.nodes.items()}


def cells(view: TreeView, column: int) -> list[str]:
    model = view.samples.rows_model
    return [model.index(row, column).data() for row in range(model.rowCount())]


def test_samples_are_shown_as_tree_with_list(view: TreeView) -> None:
    TreeViewSession(view, samples_run())
    assert labels(view) == {
        0: "…little", 1: "␣a", 2: "␣the", 3: "␣red", 4: "␣blue", 5: "␣end", 6: "␣fox", 7: "␣owl", 8: "␣hen",
    }  # fmt: skip
    nodes = view.canvas.canvas_state.scene.model.nodes
    assert [nodes[n].weight for n in (1, 3, 6)] == [0.75, 0.5, 0.25]
    assert nodes[3].note == "2 of 4"
    assert [nodes[n].state for n in (3, 4)] == ["kept", "lone"]
    assert not view.table.isVisible()
    assert view.samples.isVisible()
    assert cells(view, NUMBER) == ["40", "41", "42", "43"]
    assert cells(view, TEXT) == ["★ a red fox", "a red owl", "a blue hen", "the end"]
    assert cells(view, LENGTH) == ["3", "3", "3", "2"]


def test_single_sample_branches_are_hidden_by_default(view: TreeView) -> None:
    TreeViewSession(view, samples_run())
    shown = view.canvas.canvas_state.scene.is_shown
    assert [n for n in labels(view) if shown(n)] == [0, 1, 3]
    view.tree.set_pruned("shown")
    assert [n for n in labels(view) if shown(n)] == [0, 1, 2, 3, 4, 6, 7], "what goes on alone is folded away"


def test_node_report_has_fraction_count_text_and_probability(view: TreeView) -> None:
    session = TreeViewSession(view, samples_run())
    view.canvas.selection.pick(3)
    report = session.reports[-1]
    assert report is not None
    assert report.verdict == "2 of 4 samples came this way."
    assert "The model gives this token 50 % here" in report.sentence
    assert "Of the 3 samples that reached this position, 2 drew it (67 %)." in report.sentence
    assert report.so_far == " a red"
    assert [row.cells[:2] for row in report.rows] == [("␣red", "2"), ("␣blue", "1")]
    assert session.run.selected == 1
    assert cells(view, TEXT)[:2] == ["★ a red fox", "▸ a red owl"]
    view.tree.set_pruned("shown")
    view.canvas.selection.pick(8)
    assert session.reports[-1] is not None
    assert session.reports[-1].sentence.endswith("The only sample that reached this position drew it.")
    view.canvas.selection.pick(ROOT)
    assert session.reports[-1] is not None
    assert session.reports[-1].sentence == "There are 2 different first tokens."


def test_selecting_node_of_other_sample_shows_that_sample(view: TreeView) -> None:
    session = TreeViewSession(view, samples_run())
    view.tree.set_pruned("shown")
    view.canvas.selection.pick(4)
    assert session.run.shown_index == 2
    assert view.canvas.selection.selected == 4
    assert view.canvas.canvas_state.style.best_path == [0, 1, 4, 8]


def test_click_on_sample_draws_its_path(view: TreeView, qtbot: QtBot) -> None:
    session = TreeViewSession(view, samples_run())
    index = view.samples.rows_model.index(2, TEXT)
    rect = view.samples.visualRect(index)
    qtbot.mouseClick(view.samples.viewport(), Qt.MouseButton.LeftButton, pos=rect.center())
    assert session.run.shown_index == 2
    assert view.canvas.canvas_state.style.selected_path == [0, 1, 4, 8]
    assert all(view.canvas.canvas_state.scene.is_shown(n) for n in (4, 8))
    assert (view._path.before, view._path.last) == ("Once upon a time, there was a little a blue", " hen")
    view.node_picker.select_sample(3)
    assert not view.canvas.canvas_state.scene.is_shown(8)
    assert view.canvas.canvas_state.scene.is_shown(5)


def test_tree_grows_while_streaming_and_follows_timeline(view: TreeView) -> None:
    whole, run = samples_run(), Run(RunRequest("Once"))
    session = TreeViewSession(view, run)
    sizes = []
    for event in whole.events:
        run.apply([event])
        view.events_arrived(run, [event])
        sizes.append(len(labels(view)))
    run.outcome = Outcome("completed")
    view.events_arrived(run, ())
    assert sorted(set(sizes)) == [1, 3, 6, 9]
    assert cells(view, NUMBER) == ["1", "2", "3", "4"], "one die was rolled for all"
    session.move(1)
    assert view.canvas.canvas_state.scene.max_depth == 1
    session.move(3)
    assert view.canvas.canvas_state.scene.max_depth is None


def test_sample_list_sorts_and_tree_can_be_exported(view: TreeView) -> None:
    TreeViewSession(view, samples_run())
    view.samples.sortByColumn(LENGTH, Qt.SortOrder.AscendingOrder)
    assert cells(view, LENGTH) == ["2", "3", "3", "3"]
    head, first = view.export_table()[:2]
    reported = dict(zip(head, first, strict=True))
    assert (reported["text"], reported["texts"], reported["share"]) == (" a", 3, 0.75)


def test_view_switches_between_samples_and_other_runs(view: TreeView) -> None:
    TreeViewSession(view, samples_run())
    view.show_run(make_run(story(5)))
    assert not view.samples.isVisible()
    assert not view.actions_bar.repeat_bar.isVisible()
    assert view.canvas.canvas_state.scene.last_depth < 0
    view.show_run(samples_run())
    assert len(labels(view)) == 9


@pytest.mark.parametrize(("width", "scale"), [(1100, 1.0), (700, 1.0), (560, 1.5), (325, 1.5)])
@pytest.mark.parametrize("is_empty", [False, True])
def test_view_is_not_clipped(view: TreeView, width: int, scale: float, is_empty: bool) -> None:
    view.show_run(None if is_empty else samples_run())
    view.set_theme(theme_for("light", scale))
    view.resize(width, 301 if is_empty else 640)
    layout.settle(view)
    assert view.width() == width, "it can be as narrow as the window has room"
    assert layout.faults(view) == []


def test_samples_can_be_started_from_empty_view(qtbot: QtBot, config_dir: Path) -> None:
    engine = ScriptedEngine(tokens=STORY[:6])
    window: MainWindow = open_window(qtbot, config_dir, engine)
    window.parts.centre.show_view("tree")
    view = next(view for view in window.parts.centre.views if isinstance(view, TreeView))
    spin = view.findChildren(QSpinBox, "samplesCount")
    button = next(part for part in view.findChildren(QPushButton, "samplesButton") if part.isVisible())
    spin[0].setValue(12)
    assert {part.value() for part in spin} == {12}
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    request = engine.runs[-1]
    assert (request.strategy, request.settings["num_return_sequences"]) == ("sampling", 12)
    assert request.options["seed_each"]
    assert len(view.samples.rows_model.rows) == 12
    assert sum(view.tree.samples.sample_tree.endings().values()) == 12
    assert find(window, TreeView, "treeView").canvas.isVisible()
    window.parts.centre.show_view("compare")
    compare = next(view for view in window.parts.centre.views if isinstance(view, CompareView))
    compare.kind.button("seeds").click()
    compare.setup.seeds.setValue(5)
    with qtbot.waitSignal(window.session.finished, timeout=WAIT_MS):
        qtbot.mouseClick(compare.setup.samples_button, Qt.MouseButton.LeftButton)
    assert view.isVisible()
    assert len(view.samples.rows_model.rows) == 5
    window.close()
