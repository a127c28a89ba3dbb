"""The page of two runs: the first difference in both texts, and the elimination of causes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QPushButton,
    QTextEdit,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.features.differences.state import RunChoice
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.accessibility.accessible_widget import announce
from decodescope.app.widgets.building import STRETCH, arrange, set_up
from decodescope.app.widgets.inputs import ComboBox, ScrollArea
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel, caption, tooltip
from decodescope.app.widgets.plots.plot_panel import PlotPanel
from decodescope.app.widgets.plots.plot_spec import PlotAxis, PlotDots, PlotSpec
from decodescope.app.widgets.text_documents import ExactTextEdit
from decodescope.core import DifferenceCheck, RunDifference, verdict_text
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.core import FirstDifference

_EMPTY = mark("Two runs are needed. Run a prompt twice, with other settings or another model, and come back.")
_TOOLTIP_TRY = mark("Repeats A with single parts of B on the model, until one of them gives B's word.")


class RunText(ExactTextEdit):
    """A run's text, with its first difference marked."""

    def __init__(self, name: str, title: str, parent: QWidget) -> None:
        super().__init__(parent)
        set_up(self, name=name, accessible_name=title)
        self.setReadOnly(True)
        self.setTabChangesFocus(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._span: tuple[int, int] | None = None

    def show_text(self, text: str, first: FirstDifference | None, piece: str) -> None:
        """Show a text and mark `piece` at the first difference, or all from there on if it is not in the text."""
        self.setPlainText(text)
        self._span = None
        if first is not None:
            start = _units(text[: first.character])
            rest = text[first.character :]
            length = _units(piece) if piece and rest.startswith(piece) else min(_units(rest), 1)
            self._span = (start, start + length)
        self._mark()

    @property
    def marked_text(self) -> str:
        """The marked part of the text."""
        if self._span is None or not self.extraSelections():
            return ""
        start, stop = (2 * place for place in self._span)
        return self.toPlainText().encode("utf-16-le", "surrogatepass")[start:stop].decode("utf-16-le")

    def restyle_mark(self, theme: Theme) -> None:
        """Use the colours of a theme."""
        self._background, self._line = theme.color("selection"), theme.color("accent")
        self._mark()

    def _mark(self) -> None:
        if self._span is None or not hasattr(self, "_line"):
            self.setExtraSelections([])
            return
        cursor = QTextCursor(self.document())
        cursor.setPosition(self._span[0])
        cursor.setPosition(self._span[1], QTextCursor.MoveMode.KeepAnchor)
        look = QTextCharFormat()
        look.setBackground(self._background)
        look.setUnderlineColor(self._line)
        look.setUnderlineStyle(QTextCharFormat.UnderlineStyle.SingleUnderline)
        selection = QTextEdit.ExtraSelection()
        selection.cursor, selection.format = cursor, look
        self.setExtraSelections([selection])
        view = QTextCursor(self.document())
        view.setPosition(self._span[0])
        self.setTextCursor(view)
        self.ensureCursorVisible()


def _units(text: str) -> int:
    """Return the length of a text in UTF-16 units, as Qt counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


class CheckRow(QFrame):
    """One step of the elimination: subject, verdict and evidence."""

    def __init__(self, check: DifferenceCheck, parent: QWidget) -> None:
        super().__init__(parent)
        is_cause = check.verdict == "cause"
        self.title = set_up(PlainLabel(check.title, self), role="bannerTitle" if is_cause else "")
        self.verdict = set_up(PlainLabel(verdict_text(check.verdict), self), role="" if is_cause else "muted")
        self.evidence = WrappedLabel(check.evidence, self)
        self.evidence.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.setProperty("role", "card" if is_cause else "")
        self.setAccessibleName(f"{check.title}: {verdict_text(check.verdict)}. {check.evidence}")
        top = Qt.AlignmentFlag.AlignTop
        arrange(QHBoxLayout(self), (self.title, 0, top), (self.verdict, 0, top), (self.evidence, 1, top),
            margins=(12, 8, 12, 8), spacing=12)  # fmt: skip

    def set_widths(self, theme: Theme) -> None:
        """Align the columns."""
        self.title.setFixedWidth(theme.px(150))
        self.verdict.setFixedWidth(theme.px(80))


class RunPairPage(Themed, QWidget):
    """The page. `chosen(a, b)`: indices of the chosen runs. `tryRequested`: exchange parts on the model.
    `stopRequested`.
    """

    chosen = Signal(int, int)
    tryRequested = Signal()
    stopRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.first = self._picker("differenceA", tr("Run A"))
        self.second = self._picker("differenceB", tr("Run B"))
        self.swap = set_up(QPushButton(caption(tr("Swap")), self), name="differenceSwap")
        self.swap.setAutoDefault(False)
        self.swap.clicked.connect(self._on_swap)
        self.summary = set_up(WrappedLabel("", self), name="differenceSummary", role="brand")
        self.summary.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.reason = WrappedLabel("", self)
        self.reason.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.advice = set_up(WrappedLabel("", self), role="muted")
        self.texts = (
            RunText("differenceTextA", tr("Text of run A"), self),
            RunText("differenceTextB", tr("Text of run B"), self),
        )
        self.rows: list[CheckRow] = []
        self.plot = PlotPanel(tr("Shift of the margins on the common words"), self, (520, 190), (200, 150))
        self.try_out = set_up(QPushButton(caption(tr("Try it out")), self), name="differenceTry", role="primary")
        self.try_out.setAutoDefault(False)
        self.try_out.setToolTip(tooltip(tr(_TOOLTIP_TRY)))
        self.try_out.clicked.connect(self._on_try)
        self.copy = set_up(QPushButton(caption(tr("Copy")), self), name="differenceCopy")
        self.copy.setAutoDefault(False)
        self.copy.clicked.connect(self._copy)
        self.status = set_up(WrappedLabel("", self), role="muted")
        self._is_busy = False
        self._result: RunDifference | None = None
        self._lay_out()
        self.show_runs((), 0, 0)

    def _picker(self, name: str, title: str) -> ComboBox:
        box = set_up(ComboBox(self), name=name, accessible_name=title)
        box.setMinimumContentsLength(12)
        box.setSizeAdjustPolicy(ComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        box.currentIndexChanged.connect(self._on_chosen)
        return box

    def _lay_out(self) -> None:
        pickers = QGridLayout()
        pickers.setHorizontalSpacing(12)
        pickers.setVerticalSpacing(8)
        arrange(
            pickers, (PlainLabel("A", self), 0, 0), (self.first, 0, 1), (PlainLabel("B", self), 1, 0),
            (self.second, 1, 1), (self.swap, 0, 2, 2, 1),
        )  # fmt: skip
        pickers.setColumnStretch(1, 1)
        self._content = content = QWidget(self)
        self._texts_row = QWidget(content)
        arrange(QHBoxLayout(self._texts_row), (self.texts[0], 1), (self.texts[1], 1), margins=0, spacing=12)
        self._heading = set_up(PlainLabel(tr("Elimination").upper(), content), role="heading")
        self._list = arrange(QVBoxLayout(), spacing=4)
        self._plot_heading = set_up(PlainLabel(tr("Margin against spread").upper(), content), role="heading")
        self._plot_note = set_up(WrappedLabel("", content), role="muted")
        arrange(
            QVBoxLayout(content), self.summary, self.reason, self.advice, self._texts_row, self._heading, self._list,
            self._plot_heading, self.plot, self._plot_note, STRETCH, margins=(0, 0, 8, 0), spacing=12,
        )  # fmt: skip
        area = set_up(ScrollArea(self), accessible_name=tr("Result"))
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setWidget(content)
        self.foot = QWidget(self)
        arrange(QHBoxLayout(self.foot), self.copy, (self.status, 1), self.try_out, margins=0, spacing=8)
        arrange(QVBoxLayout(self), pickers, (area, 1), self.foot, margins=0, spacing=12)

    # What is shown

    def show_runs(self, runs: Sequence[RunChoice], a: int, b: int) -> None:
        """List the runs and choose two of them, without a signal."""
        with QSignalBlocker(self.first), QSignalBlocker(self.second):
            for box, index in ((self.first, a), (self.second, b)):
                box.clear()
                box.addItems([caption(run.title) for run in runs])
                box.setCurrentIndex(index)
        has_runs = len(runs) > 1
        for part in (self.first, self.second, self.swap):
            part.setEnabled(has_runs)
        if not has_runs:
            self.show_message(tr(_EMPTY))

    def show_message(self, text: str, role: str = "muted") -> None:
        """Show a sentence in place of a result; `role`: muted or danger."""
        self._result = None
        self._set_summary(text, role)
        self._show_parts(False)
        self.reason.hide()
        self.advice.hide()
        self.set_busy(False)

    def show_result(self, found: RunDifference, why_not_tried: str | None) -> None:
        """Show a result. `why_not_tried`: why parts cannot be tried out; empty if they can, None if they need not."""
        self._result = found
        self._set_summary(found.headline, "brand")
        self.reason.setText(found.reason)
        self.reason.setVisible(bool(found.reason))
        self.advice.setText(found.advice)
        self.advice.setVisible(bool(found.advice))
        pieces = (found.first.a, found.first.b) if found.first is not None else ("", "")
        for part, text, piece in zip(self.texts, found.written, pieces, strict=True):
            part.show_text(text, found.first, piece)
        self._show_rows(found)
        self._show_parts(True)
        self._show_plot(found)
        self.set_busy(False)
        self.try_out.setVisible(why_not_tried is not None)
        self.try_out.setEnabled(why_not_tried == "")
        self.status.setText(why_not_tried or "")
        announce(self, found.sentence)

    def _set_summary(self, text: str, role: str) -> None:
        self.summary.setProperty("role", role)
        self.summary.style().unpolish(self.summary)
        self.summary.style().polish(self.summary)
        self.summary.setText(text)

    def _show_rows(self, found: RunDifference) -> None:
        for row in self.rows:
            self._list.removeWidget(row)
            row.deleteLater()
        self.rows = [CheckRow(check, self._content) for check in found]
        for row in self.rows:
            row.set_widths(self.current_theme)
            self._list.addWidget(row)

    def _show_parts(self, on: bool) -> None:
        for part in (self._texts_row, self._heading, *self.rows, self.plot, self._plot_heading, self._plot_note):
            part.setVisible(on)
        self.copy.setEnabled(on)
        self.try_out.setVisible(False)

    def _show_plot(self, found: RunDifference) -> None:
        """Draw the shift of margins of the common words, and of the choice at the difference."""
        has_values = found.first is not None and found.shift is not None and bool(found.step_spreads)
        for part in (self.plot, self._plot_heading, self._plot_note):
            part.setVisible(has_values)
        if not has_values or found.first is None or found.shift is None:
            return
        points = tuple((float(step + 1), value) for step, value in found.step_spreads)
        choice = ((float(found.first.position + 1), found.shift.shift),)
        self.plot.show_figure(PlotSpec(
            PlotAxis(tr("Token"), integers_only=True), PlotAxis(tr("Shift in nats")),
            dots=(
                PlotDots(tr("Common words"), "accent", points),
                PlotDots(tr("First difference"), "best", choice, "diamond"),
            ),
            right=float(found.first.position + 2),
        ))  # fmt: skip
        self._plot_note.setText(
            tr(
                "Dots: how far the scores of the two runs disagree on each common word. Diamond: how far the choice "
                "moved at the first difference. Rounding explains it only if the diamond is no outlier."
            )
        )

    def set_busy(self, is_busy: bool, text: str = "") -> None:
        """Show that a comparison is in progress, with what it does; the button stops it."""
        self._is_busy = is_busy
        self.status.setText(text)
        self.try_out.setText(caption(tr("Stop") if is_busy else tr("Try it out")))
        if is_busy:
            self.try_out.setEnabled(True)

    def restyle(self, theme: Theme) -> None:
        for text in self.texts:
            text.ensurePolished()
            text.restyle_mark(theme)
            text.setFixedHeight(6 * text.fontMetrics().lineSpacing() + theme.px(16))
        for row in self.rows:
            row.set_widths(theme)

    # Controls

    @Slot()
    def _on_chosen(self) -> None:
        if self.first.currentIndex() >= 0 and self.second.currentIndex() >= 0:
            self.chosen.emit(self.first.currentIndex(), self.second.currentIndex())

    @Slot()
    def _on_swap(self) -> None:
        a, b = self.first.currentIndex(), self.second.currentIndex()
        with QSignalBlocker(self.first), QSignalBlocker(self.second):
            self.first.setCurrentIndex(b)
            self.second.setCurrentIndex(a)
        self._on_chosen()

    @Slot()
    def _on_try(self) -> None:
        if self._is_busy:
            self.stopRequested.emit()
        else:
            self.tryRequested.emit()

    @Slot()
    def _copy(self) -> None:
        """Copy the result as text."""
        if self._result is not None:
            lines = [f"{row.title}: {verdict_text(row.verdict)}. {row.evidence}" for row in self._result]
            QGuiApplication.clipboard().setText("\n".join([self._result.sentence, self._result.advice, "", *lines]))
