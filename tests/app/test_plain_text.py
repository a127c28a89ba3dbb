"""Text on widgets is shown literally; the code has no other way to set it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PySide6.QtCore import QPoint
from PySide6.QtGui import QImage, Qt
from PySide6.QtWidgets import QApplication, QLabel, QWidget
from pytestqt.qtbot import QtBot

from decodescope.app.widgets.plain_text import (
    JOINER,
    MAX_LINE,
    PlainLabel,
    RichLabel,
    as_plain_text,
    caption,
    from_plain_text,
    show_tooltip,
    tooltip,
    window_title,
)

ROOT = Path(__file__).parents[2]
HOME = ROOT / "app" / "widgets" / "plain_text.py"
HOSTILE = (
    '<img src="file:///dev/zero">',
    "<b>bold</b>",
    "text, then <i>italics</i>",
    "<!doctype html><p>page",
    "  <!DOCTYPE html>",
    '<?xml version="1.0"?><p>page</p>',
    "&lt;b&gt;",
    "&lt;&lt;&lt;<br>",
    "\n\n<table><tr><td>cell",
    "< b >spaces",
    "<qt>text</qt>",
    "<br/>",
)
PIECES = st.sampled_from(
    ["<", ">", "&lt;", "&amp;", "b", "img src=x", "/", "!", "doctype", "?xml", "?>", " ", "\n", "é"]
)


@pytest.mark.parametrize("text", HOSTILE)
def test_html_like_text_is_escaped_to_plain_text(text: str) -> None:
    assert Qt.mightBeRichText(text), "the case shows nothing"
    assert not Qt.mightBeRichText(as_plain_text(text))
    assert from_plain_text(as_plain_text(text)) == text
    assert as_plain_text(text).replace(JOINER, "") == text


@given(st.lists(PIECES).map("".join) | st.text())
@example("<" * 9)
def test_escaped_text_is_never_rich_text(text: str) -> None:
    assert not Qt.mightBeRichText(as_plain_text(text))
    assert not Qt.mightBeRichText(tooltip(text))
    assert as_plain_text(text).replace(JOINER, "") == text.replace(JOINER, "")


@pytest.mark.parametrize("text", ["", "a < b", "x <3 y", "R&D & more", "plain\nlines", "1 > 0", "&amp;"])
def test_ordinary_text_is_unchanged(text: str) -> None:
    assert as_plain_text(text) == text or from_plain_text(as_plain_text(text)) == text
    assert tooltip(text).replace(JOINER, "") == text


def test_long_tooltip_is_wrapped_and_truncated() -> None:
    lines = tooltip("word " * 400).split("\n")
    assert len(lines) > 10
    assert max(map(len, lines)) <= MAX_LINE
    assert max(map(len, tooltip("x" * 1000).split("\n"))) <= MAX_LINE
    assert len(tooltip("x\n" * 100_000)) < 5_000


def test_captions_and_titles_escape_special_characters() -> None:
    assert caption("R&D") == "R&&D"
    assert window_title("a[*]b") == "a[*][*]b"


def test_tooltip_with_image_tag_shows_text(qtbot: QtBot, tmp_path: Path) -> None:
    picture = QImage(400, 400, QImage.Format.Format_RGB32)
    picture.fill(0)
    assert picture.save(str(tmp_path / "x.png"))
    widget = QWidget()
    qtbot.addWidget(widget)
    widget.show()
    text = f'<img src="{(tmp_path / "x.png").as_uri()}">'
    show_tooltip(QPoint(5, 5), text, widget)
    (tip,) = (part for part in QApplication.topLevelWidgets() if part.inherits("QTipLabel"))
    assert isinstance(tip, QLabel)
    assert from_plain_text(tip.text()) == text
    assert tip.height() < 100, "the picture is drawn"
    show_tooltip(QPoint(5, 5), "", widget)


def test_plain_label_accepts_qlabel_arguments(qtbot: QtBot) -> None:
    parent = QWidget()
    qtbot.addWidget(parent)
    text = HOSTILE[0]
    for label, shown, owner in (
        (PlainLabel(), "", None),
        (PlainLabel(parent), "", parent),
        (PlainLabel(text), text, None),
        (PlainLabel(text, parent, wordWrap=True), text, parent),
    ):
        assert (label.text(), label.parentWidget(), label.textFormat()) == (shown, owner, Qt.TextFormat.PlainText)
    assert RichLabel("<b>x</b>", parent).textFormat() == Qt.TextFormat.RichText


# The code


def _modules() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted((ROOT / "app").rglob("*.py")):
        if path != HOME:
            yield path.relative_to(ROOT), ast.parse(path.read_text("utf-8"))


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _is_own(node: ast.expr, helpers: set[str]) -> bool:
    """Return whether an expression is a literal of the program or a call of one of the helpers."""
    match node:
        case ast.Constant():
            return True
        case ast.Call(func=func, keywords=keywords):
            name = _name(func)
            if name in helpers | {"tr", "trc", "trn"}:
                return True
            within = isinstance(func, ast.Attribute) and _is_own(func.value, helpers)
            is_format = name == "format" and all(_is_own(one.value, {*helpers, "key_of"}) for one in keywords)
            return within and (is_format or name in ("capitalize", "upper"))
        case ast.IfExp(body=body, orelse=other):
            return _is_own(body, helpers) and _is_own(other, helpers)
        case ast.BoolOp(values=values):
            return all(_is_own(value, helpers) for value in values)
        case ast.JoinedStr(values=values):
            parts = (part.value if isinstance(part, ast.FormattedValue) else part for part in values)
            return all(_is_own(part, {*helpers, "key_of"}) for part in parts)
    return False


def _shown_tips(node: ast.Call) -> Iterator[ast.expr]:
    """The texts that a call gives to a tooltip."""
    if _name(node.func) in ("setToolTip", "setStatusTip", "setWhatsThis"):
        yield node.args[0]
    elif _name(node.func) == "set_up":
        yield from (one.value for one in node.keywords if one.arg == "tooltip")


def test_source_sets_tooltips_through_helper() -> None:
    faults = [
        f"{path}:{node.lineno}: {ast.unparse(node)}"
        for path, tree in _modules()
        if path != Path("app/widgets/building.py")  # it sets what the callers of `set_up` give
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and not all(_is_own(tip, {"tooltip", "rich_tooltip"}) for tip in _shown_tips(node))
    ]
    assert faults == [], "wrap the text in app.widgets.plain_text.tooltip"


def test_source_creates_labels_through_helper() -> None:
    faults = [
        f"{path}:{node.lineno}"
        for path, tree in _modules()
        for node in ast.walk(tree)
        if (isinstance(node, ast.Call) and (_name(node.func) in ("QLabel", "QTextBrowser", "setTextFormat", "setHtml")))
        or (isinstance(node, ast.Call) and ast.unparse(node.func) == "QToolTip.showText")
        or (isinstance(node, ast.ClassDef) and "QLabel" in map(_name, node.bases))
    ]
    allowed = {"app/widgets/clipboard.py", "app/widgets/confirmation.py"}
    assert [fault for fault in faults if fault.partition(":")[0] not in allowed] == [], (
        "use PlainLabel, RichLabel or show_tooltip of app.widgets.plain_text"
    )


def test_source_sets_captions_through_helper() -> None:
    kinds = ("QPushButton", "QRadioButton", "QCheckBox", "addSection", "addMenu", "addTab", "QAction")
    menu_bar = "app/panels/menu_bar.py"
    allowed = {(menu_bar, "parent.addMenu(title)"), (menu_bar, "menu.addAction(action)")}  # the program's own menus
    faults = [
        f"{path}:{node.lineno}: {ast.unparse(node)}"
        for path, tree in _modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and node.args
        and (_name(node.func) in kinds or ast.unparse(node.func).endswith("menu.addAction"))
        and not _is_own(node.args[0], {"caption", "tabText", "str"})
        and not _is_widget(node.args[0])
        and (str(path), ast.unparse(node)) not in allowed
    ]
    assert faults == [], "wrap the text in app.widgets.plain_text.caption"


def _is_widget(node: ast.expr) -> bool:
    """Return whether an argument is a parent widget or a symbol instead of a caption."""
    return ast.unparse(node) in {
        "self",
        "parent",
        "page",
        "sign",
        "submenu",
        "self.page",
        "self.chip_row",
        "self.places",
        "self.tabText(index) + key",
    }
