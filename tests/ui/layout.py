"""Find clipped or overlapping parts of a window by measuring all visible widgets and their texts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from PySide6.QtCore import QDeadlineTimer, QEventLoop, QPoint, QRect, Qt
from PySide6.QtGui import QTextDocument
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QScrollArea,
    QSplitter,
    QSplitterHandle,
    QStyle,
    QStyleOptionButton,
    QStyleOptionComboBox,
    QWidget,
)

from decodescope.app.widgets.labels import ElidedLabel


def faults(root: QWidget) -> list[str]:
    """Return a sentence for every visible part of `root` that is clipped, overlapped or too small for its text."""
    shown = [part for part in root.findChildren(QWidget) if part.isVisible() and not part.isWindow()]
    found = [reported for part in shown for reported in (*_outside(part, root), *_too_small(part))]
    return found + [reported for parent in (root, *shown) for reported in _overlaps(parent)]


def settle(root: QWidget) -> None:
    """Activate all pending layouts, including those that one of them invalidates."""
    for _ in range(_MOST_ROUNDS):
        before = [part.geometry() for part in root.findChildren(QWidget)]
        QApplication.sendPostedEvents()
        QApplication.processEvents()
        if before == [part.geometry() for part in root.findChildren(QWidget)]:
            return


_MOST_ROUNDS = 20


def remaining(root: QWidget) -> list[str]:
    """Return faults that remain after pending zero-interval timers have laid out the page again."""
    rest = QDeadlineTimer(_REST_MS)
    while True:
        settle(root)
        found = list(faults(root))
        if not found or rest.hasExpired():
            return found
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.WaitForMoreEvents, _LOOK_MS)


_REST_MS, _LOOK_MS = 2000, 20


def name_of(part: QWidget) -> str:
    """Return the name of a part in a fault: object name, class and text."""
    reported = str(part.property("text") or part.accessibleName() or "")
    return f"{type(part).__name__}#{part.objectName()} “{reported[:40]}”"


def _outside(part: QWidget, root: QWidget) -> Iterator[str]:
    parent = part.parentWidget()
    if isinstance(part, QScrollArea) and part.widget() is not None:
        off = part.horizontalScrollBarPolicy() == Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        if off and part.widget().width() > part.viewport().width():
            yield f"{name_of(part)} hides {part.widget().width() - part.viewport().width()} pixels at its right"
    if parent is None or _scrolls(parent) or part.size().isEmpty():
        return
    rect, whole = part.geometry(), parent.rect()
    folded = isinstance(parent, QSplitter) and not whole.intersects(rect)
    if folded or isinstance(part, QSplitterHandle):
        return
    if not whole.adjusted(-1, -1, 1, 1).contains(rect):
        yield f"{name_of(part)} {_words(rect)} reaches beyond {name_of(parent)} {_words(whole)}"


def _scrolls(parent: QWidget) -> bool:
    """Return whether its content may be larger: the viewport of a scroll area."""
    area = parent.parentWidget()
    return isinstance(parent, QAbstractScrollArea) or (
        isinstance(area, QAbstractScrollArea) and area.viewport() is parent
    )


def _overlaps(parent: QWidget) -> Iterator[str]:
    parts = [
        child
        for child in parent.children()
        if isinstance(child, QWidget) and child.isVisible() and not child.isWindow() and _takes_room(child, parent)
    ]
    for one, other in combinations(parts, 2):
        common = one.geometry().intersected(other.geometry())
        if common.width() > 1 and common.height() > 1:
            yield f"{name_of(one)} and {name_of(other)} overlap by {_words(common)}"


def _takes_room(child: QWidget, parent: QWidget) -> bool:
    """Return whether the widget takes part in the layout; floating widgets (minimap, handle) do not."""
    layout = parent.layout()
    return not isinstance(child, QSplitterHandle) and layout is not None and layout.indexOf(child) >= 0


def _too_small(part: QWidget) -> Iterator[str]:
    for reported, needed, room in _needs(part):
        if needed.width() > room.width() + 1 or needed.height() > room.height() + 1:
            yield f"{name_of(part)} shows {reported} in {_words(room)}; it needs {needed.width()}×{needed.height()}"


def _needs(part: QWidget) -> Iterator[tuple[str, QRect, QRect]]:
    """Return (description, size that the text needs, size that it has)."""
    metrics = part.fontMetrics()
    if isinstance(part, ElidedLabel):
        return
    if isinstance(part, QLabel) and "</" in part.text():
        yield "words", _rich(part), part.contentsRect()
    elif isinstance(part, QLabel) and part.text():
        room = part.contentsRect().adjusted(part.margin(), 0, -part.margin(), 0)
        flags = int(Qt.TextFlag.TextWordWrap) if part.wordWrap() else 0
        yield "words", metrics.boundingRect(QRect(0, 0, room.width(), 10_000), flags, part.text()), room
    elif isinstance(part, QComboBox):
        option = QStyleOptionComboBox()
        part.initStyleOption(option)
        if part.isEditable():
            return
        field = part.style().subControlRect(
            QStyle.ComplexControl.CC_ComboBox, option, QStyle.SubControl.SC_ComboBoxEditField, part
        )
        yield "a line", QRect(0, 0, 0, metrics.height()), field
    elif isinstance(part, QAbstractButton) and part.text():
        option = QStyleOptionButton()
        option.initFrom(part)
        needed = metrics.boundingRect(QRect(0, 0, 10_000, 10_000), int(Qt.TextFlag.TextShowMnemonic), part.text())
        yield "words", needed, part.rect()
    elif isinstance(part, QAbstractSpinBox):
        edit = part.lineEdit()
        yield "a value", QRect(0, 0, metrics.horizontalAdvance(part.text()), metrics.height()), edit.rect()
    elif isinstance(part, QLineEdit) and not isinstance(part.parentWidget(), (QAbstractSpinBox, QComboBox)):
        yield "a line", QRect(0, 0, 0, metrics.height()), part.contentsRect()


def _rich(label: QLabel) -> QRect:
    """Return the size that a label's HTML needs at the label's width."""
    document = QTextDocument()
    document.setDocumentMargin(0)
    document.setDefaultFont(label.font())
    document.setHtml(label.text())
    document.setTextWidth(label.contentsRect().width() if label.wordWrap() else -1)
    return QRect(0, 0, round(document.idealWidth()), round(document.size().height()))


def _words(rect: QRect) -> str:
    return f"{rect.width()}×{rect.height()} at {rect.x()}, {rect.y()}"


def is_inside(part: QWidget, root: QWidget) -> bool:
    """Return whether the whole part lies inside `root` and no scroll area hides some of it."""
    rect = QRect(part.mapTo(root, QPoint(0, 0)), part.size())
    areas = [area for area in root.findChildren(QScrollArea) if area.isAncestorOf(part)]
    return root.rect().contains(rect) and all(
        QRect(area.viewport().mapTo(root, QPoint(0, 0)), area.viewport().size()).contains(rect) for area in areas
    )
