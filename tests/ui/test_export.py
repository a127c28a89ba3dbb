"""Everything that is shown can be saved: at any size, in either theme, as pixels, as shapes or as figures."""

from __future__ import annotations

import csv
import json
import math
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QFileDialog, QMessageBox, QScrollBar, QToolButton
from pytestqt.qtbot import QtBot

from decodescope import core
from decodescope.app.panels.export_dialog import HTML, PNG, SVG, TRACE, ExportDialog, ExportTarget
from decodescope.app.storage.exported_files import CSV, JSON
from decodescope.app.theme.theme import theme_for
from decodescope.app.views import VIEWS
from decodescope.app.views.base import View
from decodescope.app.views.text.row_painting import COLOURINGS, PaintOptions
from decodescope.app.views.tokens.excerpt import coloured_html
from decodescope.app.views.tree.view import TreeView
from decodescope.app.widgets.widget_pictures import PictureOptions
from decodescope.app.window.main_window import MainWindow
from tests.disks import full_disk
from tests.ui.beams import beam_run, beam_steps
from tests.ui.fake_engine import STORY, ScriptedEngine
from tests.ui.windows import find, open_window
from tests.ui.windows import run as run_window

SIZE = QSize(700, 500)
TEXT = "{http://www.w3.org/2000/svg}text"


@pytest.fixture
def window(qtbot: QtBot, config_dir: Path) -> Iterator[MainWindow]:
    window = open_window(qtbot, config_dir)
    run_window(qtbot, window)
    yield window
    window.close()


def save(window: MainWindow, name: str, pose: PictureOptions, path: object) -> None:
    window.parts.export.save(name, pose, str(path))


def part(window: MainWindow, name: str) -> View:
    """The view or the panel of that name."""
    panels = {"inspector": window.parts.inspector, "timeline": window.parts.timeline}
    return panels[name] if name in panels else window.parts.centre.columns[0].view(name)


PARTS = [*(spec.name for spec in VIEWS if not spec.hidden_when_empty), "inspector", "timeline"]


def test_picture_has_requested_size(window: MainWindow, tmp_path: Path) -> None:
    path, shown = tmp_path / "picture.png", window.parts.centre.columns[0].current_name
    for name in PARTS:
        geometry = part(window, name).geometry()
        save(window, name, PictureOptions(SIZE, scale=2.0), path)
        picture = QImage(str(path))
        assert picture.size() == SIZE * 2, name
        seen = {picture.pixel(x, y) for x in range(0, 1400, 7) for y in range(0, 1000, 7)}
        assert len(seen) > 1, f"nothing is on that of {name}"
        assert window.parts.centre.columns[0].current_name == shown
        if name in ("inspector", "timeline", shown):
            assert part(window, name).geometry() == geometry, f"{name} does not stay where it was"


@pytest.mark.every(2)
@pytest.mark.skipif(sys.platform == "win32", reason="files there have no limit")
@pytest.mark.parametrize("room", [0, 300])
@pytest.mark.parametrize("name", ["memory.svg", "memory.png", "memory.csv", "memory.json", "run.html", "window.svg"])
def test_full_disk_keeps_existing_file_and_shows_error(
    window: MainWindow, tmp_path: Path, name: str, room: int
) -> None:
    path = tmp_path / name
    path.write_text("what stood there")
    with full_disk(room):
        save(window, path.stem, PictureOptions(SIZE), path)
    assert [one.read_text() for one in tmp_path.iterdir() if one.is_file()] == ["what stood there"]
    (box,) = window.findChildren(QMessageBox)
    assert path.name in box.text()
    assert "too large for that disk" in box.text()


def test_svg_contains_text_elements(window: MainWindow, tmp_path: Path) -> None:
    path = tmp_path / "picture.svg"
    for name in PARTS:
        save(window, name, PictureOptions(SIZE, expands_scrolled=True), path)
        root = ElementTree.parse(path).getroot()
        assert root.get("viewBox", "").startswith("0 0 700 "), name
        assert [text for text in root.iter(TEXT) if "".join(text.itertext()).strip()], name
        families = {part.get("font-family") for part in root.iter() if part.get("font-family")}
        assert all(family.endswith((", sans-serif", ", monospace")) for family in families if family), (
            "for other machines"
        )


@pytest.mark.parametrize("name", ["memory", "inspector"])
def test_picture_in_other_theme_keeps_window_theme(window: MainWindow, qtbot: QtBot, tmp_path: Path, name: str) -> None:
    if name != "inspector":
        window.parts.centre.show_view(name)
    shown, widget = window.parts.appearance.theme, part(window, name)
    other = theme_for("light" if shown.is_dark else "dark", shown.scale)
    save(window, name, PictureOptions(SIZE), tmp_path / "first.png")  # it has its place by now
    QApplication.processEvents()
    before = widget.grab().toImage()
    save(window, name, PictureOptions(SIZE, theme=other.name), tmp_path / "p.png")
    corner = QImage(str(tmp_path / "p.png")).pixelColor(699, 499)
    assert corner == other.color("panel" if name == "inspector" else "window")
    qtbot.waitUntil(lambda: widget.grab().toImage() == before)  # what is shown is as it was


def test_picture_includes_scrolled_content(window: MainWindow, tmp_path: Path) -> None:
    window.resize(1200, 560)
    path, low = tmp_path / "whole.png", QSize(320, 200)
    save(window, "inspector", PictureOptions(low, expands_scrolled=True), path)
    assert QImage(str(path)).height() > 300
    bars = window.parts.inspector.findChildren(QScrollBar)
    before = [bar.value() for bar in bars]
    window.parts.inspector.area.verticalScrollBar().setValue(5)
    save(window, "inspector", PictureOptions(low), path)
    assert QImage(str(path)).size() == low
    assert [bar.value() for bar in bars] == [5 if bar is window.parts.inspector.area.verticalScrollBar() else value
                                             for bar, value in zip(bars, before, strict=True)]  # fmt: skip


def test_picture_of_whole_window_has_requested_scale(window: MainWindow, tmp_path: Path) -> None:
    save(window, "window", PictureOptions(SIZE, scale=1.25), tmp_path / "window.png")
    assert QImage(str(tmp_path / "window.png")).size() == (window.size().toSizeF() * 1.25).toSize()
    save(window, "window", PictureOptions(SIZE), tmp_path / "window.svg")
    words = [text.text for text in ElementTree.parse(tmp_path / "window.svg").iter(TEXT)]
    assert any("Prompt" in word or "PROMPT" in word for word in words if word)


def read_csv(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_tables_are_saved_as_csv_and_json(window: MainWindow, tmp_path: Path) -> None:
    for name in ("tokens", "memory", "inspector", "timeline"):
        head, *rows = part(window, name).export_table()
        assert rows
        for kind in ("csv", "json"):
            save(window, name, PictureOptions(SIZE), tmp_path / f"figures.{kind}")
        cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
        assert read_csv(tmp_path / "figures.csv") == [list(head), *cells]
        assert json.loads((tmp_path / "figures.json").read_text(encoding="utf-8")) == [
            {key: None if cell in (math.inf, -math.inf) else cell for key, cell in zip(head, row, strict=True)}
            for row in rows
        ]


def exported(window: MainWindow, folder: Path, name: str) -> dict[str, object]:
    """Everything that the export writes or copies of one item: tables, texts and pictures."""
    options, target = PictureOptions(SIZE), window.parts.export
    found: dict[str, object] = {}
    for kind in (CSV, JSON, SVG):
        path = folder / f"item.{kind}"
        save(window, name, options, path)
        texts = ElementTree.parse(path).getroot().iter(TEXT) if kind == SVG else ()
        found[kind] = ["".join(text.itertext()) for text in texts] if kind == SVG else path.read_bytes()
    for kind in (CSV, JSON):
        target.copy(name, kind, options)
        found[f"copied {kind}"] = QApplication.clipboard().text()
    image = target.exports.image(name, options)  # its bytes live as long as it does
    found["image"] = bytes(image.constBits())
    return found


@pytest.mark.parametrize("panels_are_open", [True, False])
def test_exports_of_hidden_views_after_second_run_equal_those_of_new_views(
    qtbot: QtBot, config_dir: Path, tmp_path: Path, panels_are_open: bool
) -> None:
    """All views have been shown with the first run and are hidden during the second one."""
    views = [spec.name for spec in VIEWS if not spec.hidden_when_empty]
    engine = ScriptedEngine()
    window = open_window(qtbot, config_dir, engine)
    for panel in ("toggle_inspector", "toggle_timeline"):
        if window.parts.layout.is_open[panel] != panels_are_open:
            window.parts.actions.do(panel)
    run_window(qtbot, window)
    for name in (*views, "tokens"):
        window.parts.centre.show_view(name)
        QApplication.processEvents()
    window.session.select_token(2)
    first_table = window.parts.export.exports.figures("tokens")
    engine.tokens = STORY[20:33]
    front = "compare" if panels_are_open else "tokens"
    window.parts.centre.show_view(front)
    run_window(qtbot, window)
    assert window.session.run is not None
    names = [*views, "inspector", "timeline"]
    found = {name: exported(window, tmp_path, name) for name in names}
    excerpt = window.parts.centre.columns[0].view("tokens").current_excerpt()
    assert excerpt is not None
    assert excerpt.plain == window.session.run.text
    assert window.parts.export.exports.figures("tokens") != first_table
    window.session.emit_current()
    QApplication.processEvents()
    for name in names:
        assert exported(window, tmp_path, name) == found[name], f"{name} was exported as it was before"


def test_copied_text_of_hidden_tokens_view_is_of_shown_run(qtbot: QtBot, config_dir: Path) -> None:
    engine = ScriptedEngine()
    window = open_window(qtbot, config_dir, engine)
    run_window(qtbot, window)
    window.parts.centre.show_view("compare")
    engine.tokens = STORY[20:33]
    run_window(qtbot, window)
    assert window.session.run is not None
    window.parts.clipboard.copy_text()
    assert QApplication.clipboard().text() == window.session.run.text


def test_tree_view_table_has_row_per_candidate(qtbot: QtBot, config_dir: Path) -> None:
    """Uses beam events, which a scripted run does not have."""
    run = beam_run(beam_steps(4), ranked=True)
    tree = TreeView()
    qtbot.addWidget(tree)
    tree.show_run(run)
    assert len(tree.export_table()) == 1 + sum(len(step.candidates) for step in run.beams.steps)


def test_empty_window_offers_no_tables(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    offers = {offer.name: offer for offer in window.parts.export.exports.offers()}
    assert set(offers) == {*PARTS, "window"}, "there is no run yet"
    assert {name for name, offer in offers.items() if "csv" in offer.formats} <= {"compare"}, (
        "it tells what it cannot run"
    )
    window.close()


def test_run_is_saved_as_html_page(window: MainWindow, tmp_path: Path) -> None:
    save(window, "run", PictureOptions(SIZE), tmp_path / "run.html")
    text = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert text == core.page_text(window.session.run.events)
    assert json.dumps(window.session.run.tokens[1].text)[1:-1] in text


def test_menu_saves_web_page_of_run_in_one_step(window: MainWindow, tmp_path: Path) -> None:
    """Two clicks, File and Web page…, lead to the file's name."""
    command = window.parts.menu_bar.commands["save_page"]
    assert command in window.parts.menu_bar.menus["&File"].actions()
    command.trigger()
    requested = window.findChild(QFileDialog)
    assert requested.nameFilters() == ["Web pages (*.html)"]
    requested.fileSelected.emit(str(tmp_path / "pupils.html"))
    assert (tmp_path / "pupils.html").read_text(encoding="utf-8") == core.page_text(window.session.run.events)
    requested.close()


def test_menu_without_run_says_that_there_is_nothing_to_save(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    window.parts.actions.do("save_page")
    assert window.findChild(QFileDialog) is None
    assert window.parts.centre.notice_banner.isVisible()


def test_failed_save_shows_error(window: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    for kind in ("png", "svg", "csv", "json", "html"):
        path = tmp_path / "nowhere" / f"p.{kind}"
        save(window, "run" if kind == "html" else "memory", PictureOptions(SIZE), path)
        box = window.findChild(QMessageBox)
        assert str(path) in box.text()
        with qtbot.waitSignal(box.destroyed):
            box.close()


def test_too_large_picture_is_rejected(window: MainWindow, qtbot: QtBot, tmp_path: Path) -> None:
    save(window, "tokens", PictureOptions(QSize(10_000, 10_000), scale=2.0), tmp_path / "p.png")
    box = window.findChild(QMessageBox)
    assert "20,000 × 20,000 pixels is too large" in box.text()
    with qtbot.waitSignal(box.destroyed):
        box.close()


def test_export_button_preselects_page_and_lists_current_view_first(window: MainWindow, qtbot: QtBot) -> None:
    window.parts.centre.show_view("memory")
    find(window, QToolButton, "exportButton").click()
    dialog = window.findChild(ExportDialog)
    titles = [dialog.content_combo.itemText(n) for n in range(dialog.content_combo.count())]
    assert titles == ["Full run", "Memory", "Tokens", "Chat", "Tree", "Speculation", "Compare", "Inspector", "Timeline",
                      "Whole window"]  # fmt: skip
    assert dialog.windowTitle() == "Export"
    assert dialog.format_combo.currentData() == HTML
    assert "browser" in dialog.description.text()
    assert not dialog.copy.isEnabled()
    dialog.content_combo.setCurrentIndex(titles.index("Memory"))
    assert dialog.format_combo.findData(CSV) >= 0
    dialog.content_combo.setCurrentIndex(titles.index("Tree"))
    assert dialog.format_combo.findData(CSV) < 0, "there was no search"
    dialog.content_combo.setCurrentIndex(titles.index("Inspector"))
    assert (dialog.width_box.value(), dialog.height_box.value()) == window.parts.inspector.size().toTuple()
    dialog.content_combo.setCurrentIndex(titles.index("Whole window"))
    assert not dialog.width_box.isVisible()
    dialog.content_combo.setCurrentIndex(titles.index("Full run"))
    dialog.format_combo.setCurrentIndex(dialog.format_combo.findData(TRACE))
    dialog.save.click()
    requested = window.findChild(QFileDialog)
    assert requested.nameFilters() == ["Recorded runs (*.decodescope)"]
    with qtbot.waitSignal(requested.destroyed):
        requested.reject()


def test_dialog_emits_selected_options(qtbot: QtBot) -> None:
    dialog = ExportDialog([ExportTarget("tokens", "Tokens", (PNG, SVG, CSV, JSON), QSize(640, 480))])
    dialog.width_box.setValue(800)
    assert dialog.description.text() == "1,600 × 960 pixels"
    dialog.scale.setValue(1.25)
    assert dialog.description.text() == "1,000 × 600 pixels"
    dialog.scale.setValue(2.0)
    dialog.theme.setCurrentIndex(2)
    assert dialog.pose == PictureOptions(QSize(800, 480), scale=2.0, theme="dark")
    dialog.full_height_box.setChecked(True)
    assert not dialog.height_box.isEnabled()
    dialog.format_combo.setCurrentIndex(dialog.format_combo.findData(SVG))
    assert dialog.pose == PictureOptions(QSize(800, 480), True, 1.0, "dark")
    dialog.format_combo.setCurrentIndex(dialog.format_combo.findData(CSV))
    assert not dialog.width_box.isVisibleTo(dialog)
    dialog.format_combo.setCurrentIndex(dialog.format_combo.findData(PNG))
    dialog.show()
    with qtbot.waitSignal(dialog.chosen) as reported:
        dialog.save.click()
    assert reported.args[:2] == ["tokens", PNG]


def test_dialog_copies_to_clipboard(window: MainWindow, qtbot: QtBot) -> None:
    clipboard = QApplication.clipboard()
    window.parts.actions.do("save_picture")
    dialog = window.findChild(ExportDialog)
    dialog.content_combo.setCurrentIndex(1)
    dialog.width_box.setValue(300)
    dialog.copy.click()
    assert clipboard.image().width() == 600
    dialog.format_combo.setCurrentIndex(dialog.format_combo.findData(JSON))
    assert dialog.copy.text() == "Copy"
    dialog.copy.click()
    assert len(json.loads(clipboard.text())) == len(window.session.run.tokens)
    with qtbot.waitSignal(dialog.destroyed):
        dialog.close()


def test_copy_picture_copies_current_view(window: MainWindow) -> None:
    window.parts.actions.do("copy_picture")
    stack = window.parts.centre.columns[0].stack.size()
    assert QApplication.clipboard().image().size() == stack * 2


def test_text_is_copied_plain_or_colored(window: MainWindow) -> None:
    clipboard, run = QApplication.clipboard(), window.session.run
    window.parts.actions.do("copy_text")
    assert clipboard.text() == run.text
    window.parts.actions.do("copy_coloured")
    assert clipboard.text() == run.text
    token = next(token for token in run.tokens if token.text.strip())
    colour = theme_for("light").ramp(token.raw_probability).name()
    assert (
        f'<span style="color:{colour};text-decoration:underline">{escape(token.text)}</span>'
        in clipboard.mimeData().html()
    )


def test_colored_html_uses_shown_colors_and_escapes_text(window: MainWindow) -> None:
    run = window.session.run
    evil = [replace(run.tokens[0], text='<img src="x">\n', origin="draft", rank=1)]
    stored = theme_for("light").kept
    made = {name: coloured_html((), evil, "&", PaintOptions(theme_for("dark"), name)) for name in COLOURINGS}
    assert f'<span style="color:{stored};text-decoration:underline">&lt;img' in made["origin"]
    assert made["rank"] != made["origin"] != made["none"]
    assert made["none"].endswith("&lt;img src=&quot;x&quot;&gt;<br>&amp;</p>")
    apart = coloured_html((), evil, "&", PaintOptions(theme_for("dark"), "difference", divergences={0: 9.0}))
    assert apart != made["difference"]


def test_copy_text_in_chat_view_without_turns_copies_run(window: MainWindow) -> None:
    window.parts.centre.show_view("chat")
    window.parts.setup.prompt.set_prompt("Hello <b>", True)
    window.parts.actions.do("copy_text")
    assert QApplication.clipboard().text() == window.session.run.text, "no turn yet: the run's text"


def test_copy_without_run_shows_notice(qtbot: QtBot, config_dir: Path) -> None:
    window = open_window(qtbot, config_dir)
    QApplication.clipboard().setText("before")
    window.parts.actions.do("copy_coloured")
    assert QApplication.clipboard().text() == "before"
    assert "Run something first" in window.parts.centre.notice_banner.cause.text()
    window.close()


def test_csv_formulas_are_escaped_unless_disabled(window: MainWindow, tmp_path: Path) -> None:
    dialog = ExportDialog(window.parts.export.exports.offers(), window)
    dialog.content_combo.setCurrentIndex(1)
    dialog.format_combo.setCurrentIndex(dialog.format_combo.findData(PNG))
    assert dialog.escape_formulas_box.isHidden()
    dialog.format_combo.setCurrentIndex(dialog.format_combo.findData(CSV))
    assert not dialog.escape_formulas_box.isHidden()
    assert dialog.pose.guard_formulas
    dialog.escape_formulas_box.setChecked(False)
    assert not dialog.pose.guard_formulas
    dialog.close()
    view = part(window, "tokens")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(view, "export_table", lambda: [["text"], ["=1+1"]])
        for guard, cell in ((True, "'=1+1"), (False, "=1+1")):
            save(window, "tokens", PictureOptions(SIZE, guard_formulas=guard), tmp_path / "t.csv")
            assert (tmp_path / "t.csv").read_text().splitlines() == ["text", cell]
            window.parts.export.copy("tokens", CSV, PictureOptions(SIZE, guard_formulas=guard))
            assert QApplication.clipboard().text().splitlines() == ["text", cell]
