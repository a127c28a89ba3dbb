"""The displayed tree: its run, and its kind of content."""

from __future__ import annotations

from PySide6.QtCore import QObject, QPointF, QRectF, QSize, Qt, Slot
from PySide6.QtGui import QFont, QFontMetricsF, QGuiApplication, QPainter, QPaintEvent, QTextCharFormat, QTextLayout
from PySide6.QtWidgets import QWidget

from decodescope.app.state.beam_tree import HypothesisRow
from decodescope.app.state.run import Run
from decodescope.app.state.sample_tree import Sample, has_samples
from decodescope.app.theme.themed import Themed
from decodescope.app.views.base import View
from decodescope.app.views.tree.beam_content import BeamContent
from decodescope.app.views.tree.sample_content import SampleContent
from decodescope.app.views.tree.tree_content import TreeContent, prompt_end
from decodescope.app.widgets.accessibility import AccessibleWidget, Role
from decodescope.app.widgets.plain_text import tooltip
from decodescope.app.widgets.tree_canvas import TreeCanvas
from decodescope.resources.language import mark, tr


class PathLine(Themed, QWidget, AccessibleWidget):
    """The text up to the selected node on one line, with the node's own token in bold at the end."""

    accessible_role = Role.StaticText

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("pathLine")
        self.before, self.last, self.hint = "", "", ""

    def show_text(self, before: str, last: str, hint: str = "") -> None:
        """Show a text; `hint` is shown if it is empty."""
        self.before, self.last, self.hint = " ".join(before.split("\n")), last, hint
        self.setAccessibleName(
            tr("Text so far: {before}{last}").format(before=before, last=last) if before or last else hint
        )
        self.setToolTip(tooltip(before + last))
        self.update()

    def sizeHint(self) -> QSize:
        """Return the height of one line."""
        return QSize(self._theme.px(200), self._theme.px(32))

    minimumSizeHint = sizeHint

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the text, eliding its start."""
        theme, painter = self._theme, QPainter(self)
        plain, strong = theme.font(13), theme.font(13, 600)
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        room = QRectF(self.rect()).adjusted(theme.px(16), 0, -theme.px(16), 0)
        if not self.before and not self.last:
            painter.setFont(theme.font(12))
            painter.setPen(theme.color("muted"))
            painter.drawText(room, flags, self.hint)
            return
        tail = QFontMetricsF(strong).horizontalAdvance(self.last)
        room_before = max(0.0, room.width() - tail)
        before = QFontMetricsF(plain).elidedText(self.before, Qt.TextElideMode.ElideLeft, room_before)
        self._make_layout(before, plain, strong).draw(painter, room.topLeft())

    def _make_layout(self, before: str, plain: QFont, strong: QFont) -> QTextLayout:
        """Return both parts as one line, so that ligatures and text direction are correct."""
        muted, accent = QTextCharFormat(), QTextCharFormat()
        muted.setForeground(self._theme.color("muted"))
        accent.setForeground(self._theme.color("accent"))
        accent.setFont(strong)
        layout = QTextLayout(before + self.last, plain)
        split = len(before.encode("utf-16-le")) // 2
        layout.setFormats(
            [_format_range(0, split, muted), _format_range(split, len(self.last.encode("utf-16-le")) // 2, accent)]
        )
        layout.beginLayout()
        line = layout.createLine()
        line.setPosition(QPointF(0, (self.height() - line.height()) / 2))
        layout.endLayout()
        return layout


def _format_range(start: int, length: int, char_format: QTextCharFormat) -> QTextLayout.FormatRange:
    result = QTextLayout.FormatRange()
    result.start, result.length, result.format = start, length, char_format
    return result


class DisplayedTree(QObject):
    """The tree of a beam search or of several samples; `content` is None if the run has neither."""

    def __init__(self, canvas: TreeCanvas, parent: QWidget) -> None:
        super().__init__(parent)
        self._canvas = canvas
        self.beams, self.samples = BeamContent(canvas.canvas_state, parent), SampleContent(canvas.canvas_state, parent)
        self.run: Run | None = None
        self.content: TreeContent | None = None

    def set_run(self, run: Run | None) -> None:
        """Switch to another run."""
        self.run = run
        for content in (self.beams, self.samples):
            content.restart()

    def row_at(self, index: int) -> HypothesisRow | Sample | None:
        """Return the hypothesis or sample in a row of the shown table."""
        table = self.samples.table if self.shows_samples else self.beams.table
        rows = table.rows_model.rows
        return rows[index] if 0 <= index < len(rows) else None

    @property
    def shows_samples(self) -> bool:
        """Whether the tree shows several samples of one prompt."""
        return self.content is self.samples

    def select_content(self) -> TreeContent | None:
        """Select the run's kind of tree; return its content if it has just changed, else None."""
        run = self.run
        has_beams = run is not None and run.beams is not None
        selected: TreeContent | None = self.beams if has_beams else self.samples if has_samples(run) else None
        before, self.content = self.content, selected
        if selected is None or selected is before:
            return None
        selected.restart()  # several sequences look like samples until the first beam step
        self._canvas.canvas_state.set_pruned(selected.faint_mode)
        if self.shows_samples:
            self._canvas.navigation.keep_readable()
        return selected

    @Slot(str)
    def set_pruned(self, mode: str) -> None:
        """Show, dim or hide the tree's faint nodes."""
        self._canvas.canvas_state.set_pruned(mode)
        if self.content is not None:
            self.content.faint_mode = mode


_HINT = mark("Select a node, or move with the arrow keys; type to find a token.")


class NodePicker(QObject):
    """Observe the canvas and the tables; the report on the selected node is set on `view`."""

    def __init__(self, view: View, canvas: TreeCanvas, tree: DisplayedTree, path: PathLine) -> None:
        super().__init__(view)
        self._view, self._canvas, self._tree, self._path = view, canvas, tree, path
        canvas.selection.nodeSelected.connect(self._on_node)
        canvas.selection.selectionCleared.connect(self._on_nothing)
        tree.beams.table.nodePicked.connect(canvas.selection.pick)
        tree.samples.table.samplePicked.connect(self.select_sample)

    @Slot(int)
    def _on_node(self, node: int) -> None:
        run, content, samples = self._tree.run, self._tree.content, self._tree.samples
        if run is None or content is None:
            return
        self._canvas.navigation.set_follow(False)  # keep the selected position while the run continues
        passing = samples.samples_through(node) if self._tree.shows_samples else ()
        if passing and run.shown_index not in passing:
            self._view.signals.sequenceActivated.emit(passing[0])
        self.report_node(node)
        content.select_row(node)
        place = content.token_index(run, node)
        if place is not None:
            self._view.signals.tokenActivated.emit(place)

    @Slot(int)
    def select_sample(self, number: int) -> None:
        """Show a sample in all views, and its path in the tree."""
        samples = self._tree.samples
        self._canvas.navigation.set_follow(False)
        samples.draw_full_path(number)
        self._view.signals.sequenceActivated.emit(number)
        path = samples.path_of(number)
        self._canvas.canvas_state.unfold(path)
        self._canvas.selection.select(path[-1])
        samples.select_row(path[-1])
        self.report_node(path[-1])
        self._canvas.navigation.ensure_visible(samples.branch_point(number))

    @Slot()
    def _on_nothing(self) -> None:
        self.report_node(None)
        if self._tree.content is not None:
            self._tree.content.select_row(None)

    def report_node(self, node: int | None) -> None:
        """Show a node in the inspector, and the text that leads to it."""
        view, run, content = self._view, self._tree.run, self._tree.content
        before, view.report = view.report, None
        if run is not None and content is not None and node is not None:
            view.report = content.report(run, node)
        self.show_path(node)
        if (view.report is not None or before is not None) and view.isVisible():
            view.signals.reportSelected.emit(view.report)  # a hidden tree must not replace the visible view's report

    def show_path(self, node: int | None) -> None:
        """Show the end of the prompt and the text up to a node; a hint if there is none."""
        run, content = self._tree.run, self._tree.content
        last = content.last_text(node) if content is not None and node else ""
        if run is None or content is None or not node or not last:
            self._path.show_text("", "", tr(_HINT))
            return
        written = content.text(node)
        own = last if written.endswith(last) else ""
        self._path.show_text(prompt_end(run) + written[: len(written) - len(own)], last)

    @Slot()
    def copy_text(self) -> None:
        """Copy the text up to the selected node."""
        node = self._canvas.selection.selected
        if self._tree.content is not None and node:
            QGuiApplication.clipboard().setText(self._tree.content.text(node))
