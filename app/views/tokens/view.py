"""The token view: the text as it is written, every token with how sure the model was of it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt, QTimer, Signal, Slot
from PySide6.QtGui import (
    QAccessible,
    QAccessibleTextCursorEvent,
    QContextMenuEvent,
    QFocusEvent,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QMenu, QWidget

from app.state.run import Run
from app.theme.theme import Theme, theme_for
from app.views.text.column import Column
from app.views.text.origins import KEY, SPECULATIVE
from app.views.text.paint import COLOURINGS, Look, paint_rows
from app.views.text.walk import BACKWARDS, KEYS, extend, step
from app.views.text.wording import figures, spoken, token_text
from app.views.tokens.headings import SequenceChips, is_waiting, paint_empty, paint_heading
from app.views.tokens.page import Page
from app.views.tokens.selection import TextChoice
from app.views.tokens.tools import TokenTools
from app.widgets.hover_area import HoverArea
from app.widgets.legend import Legend
from app.widgets.popover import Popover
from core.events import Event

HOVER_MS = 250
HINT = "click a token, or ← →"
CHANGED = "▾ the search changed its mind here"


class TokenView(HoverArea):
    """Text of the shown sequence, or all sequences side by side where they fit.

    `tokenActivated(i)`: the user picked token i of the shown sequence; `sequenceActivated(n)`: another sequence;
    `inspectorRequested()`: the user wants to read about the picked token.
    """

    tokenActivated = Signal(int)
    sequenceActivated = Signal(int)
    inspectorRequested = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent, objectName="tokenView")
        theme = theme_for("light")
        self._look = Look(theme)
        self._page = Page(theme)
        self._choice = TextChoice()
        self._speculates = False
        self._colourings = {False: "probability", True: "origin"}
        self._pressed: QPoint | None = None
        self._place: tuple[int, int] | None = None
        self._hover_place = QRect()
        self._popover = Popover(theme, self)
        self._legend = Legend(theme, self)
        self._chips = SequenceChips(self)
        self._chips.chosen.connect(self.sequenceActivated)
        self._tools = TokenTools(self)
        self._tools.hide()
        self._tools.colouringChosen.connect(self._choose_colouring)
        self._tools.whitespaceToggled.connect(self.set_whitespace)
        self._hover_timer = QTimer(self, singleShot=True, interval=HOVER_MS)
        self._hover_timer.timeout.connect(self._show_popover)
        self._set_up()
        self.set_theme(theme)
        self.set_colouring("probability")

    def _set_up(self) -> None:
        self.setAccessibleName("Generated text")
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setMouseTracking(True)
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)

    # What the shell calls

    def header_widget(self) -> QWidget:
        """The view's tools, for the right end of the tab bar."""
        return self._tools

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""
        self._look.theme = theme
        self._page.restyle(theme)
        for part in (self._popover, self._legend, self._chips, self._tools):
            part.set_theme(theme)
        self.verticalScrollBar().setSingleStep(theme.px(35))
        self._arrange()

    @Slot(str)
    def set_colouring(self, name: str) -> None:
        """Colour tokens by `probability`, `rank`, `entropy` or not at all (`none`)."""
        self._look.colouring = name
        self._tools.set_colouring(name)
        _title, low, high = COLOURINGS[name]
        self._legend.set_words(low, high, self._hint())
        self.viewport().update()

    @Slot(str)
    def _choose_colouring(self, name: str) -> None:
        """What the reader picks holds for runs of the same kind."""
        self._colourings[self._speculates] = name
        self.set_colouring(name)

    def _hint(self) -> str:
        if self._look.colouring == "origin":
            return KEY
        return f"{CHANGED}   {HINT}" if self._look.changed else HINT

    @Slot(bool)
    def set_whitespace(self, shown: bool) -> None:
        """Show or hide ␣ and ↵."""
        self._look.whitespace = shown
        self._tools.whitespace.setChecked(shown)
        self.viewport().update()

    def show_run(self, run: Run | None) -> None:
        """Show another run from its beginning; None for an empty page."""
        self._choice.begin(None, 0)
        self.leave()
        self._page.update(None, 0)
        self._page.run = run
        self._speculates = run is not None and run.request.strategy in SPECULATIVE
        self.set_colouring(self._colourings[self._speculates])
        self._arrange()

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """Add what was written; scroll along only where the reader is at the end already."""
        top, place = self._page.unsettled(), self._view_state()
        self._page.run = run
        self._arrange(repaint=False)
        if top and place == self._view_state() and run.beams is None:
            changed = QRectF(0, top, self.viewport().width(), self._page.height + self.viewport().height())
            self.viewport().update(self._from_page(changed).adjusted(-self._padding().x(), 0, 0, 0))
        else:
            self.viewport().update()

    def _view_state(self) -> tuple[object, ...]:
        """What must be as it was for a part of the page to be painted alone."""
        bar, run = self.verticalScrollBar(), self._page.run
        return id(run), run and run.shown, bar.value(), self.viewport().size(), self._page.side_by_side

    def cursor_moved(self, run: Run) -> None:
        """Draw up to the cursor, and keep that place in sight; another sequence is shown where it stands."""
        moved_in_same = self._place is not None and self._place[0] == run.shown and self._place[1] != run.cursor
        self._page.run = run
        self._arrange()
        column = self._page.shown()
        if column is not None and run.cursor and moved_in_same:
            top = column.row_top(max(0, column.drawn_rows - 1))
            self._reveal(top, column.metrics.row, around=self.viewport().height() // 4)

    def selection_changed(self, run: Run) -> None:
        """Outline the selected token, and keep it in sight."""
        self._page.run = run
        self._arrange()
        boxes = self._boxes(run.selected)
        if boxes:
            self._reveal(boxes[0].top(), boxes[-1].bottom() - boxes[0].top())
        self._announce()

    # Geometry

    def _padding(self) -> QPoint:
        return QPoint(self._look.theme.px(26), self._look.theme.px(20))

    def _arrange(self, repaint: bool = True) -> None:
        """Bring the page, the scroll bar and the parts at the edges up to the run."""
        run, bar = self._page.run, self.verticalScrollBar()
        at_end = bar.value() >= bar.maximum() - 2
        pad = self._padding()
        self._page.update(run, self.viewport().width() - 2 * pad.x())
        self._follow(run)
        self._chips.show_run(run, hidden=self._page.side_by_side)
        self._place_parts()
        height = self.viewport().height()
        bar.setPageStep(height)
        bar.setRange(0, max(0, round(self._page.height) + 2 * pad.y() - height) if run else 0)
        if at_end and run is not None and run.following:
            bar.setValue(bar.maximum())
        if repaint:
            self.viewport().update()

    def _follow(self, run: Run | None) -> None:
        look = self._look
        look.selected = run.selected if run else None
        lately = run is not None and (is_waiting(run) or not run.following)
        look.newest = run.cursor - 1 if run and lately and run.cursor else None
        look.hovered = None if run is None else look.hovered
        look.changed = frozenset(run.changes) if run else frozenset()
        self._legend.set_hint(self._hint())
        self._place = (run.shown, run.cursor) if run else None

    def _place_parts(self) -> None:
        theme, pad = self._look.theme, self._padding()
        foot = theme.px(36) if self._has_text() else 0
        head = theme.px(44) if not self._chips.isHidden() else 0
        self.setViewportMargins(0, head, 0, foot)
        self._legend.setVisible(bool(foot))
        self._legend.setGeometry(pad.x(), self.height() - foot, self.width() - 2 * pad.x(), foot)
        self._chips.setGeometry(pad.x(), theme.px(10), self.width() - 2 * pad.x(), theme.px(32))

    def _has_text(self) -> bool:
        run = self._page.run
        return run is not None and bool(run.prompt or run.tokens)

    def _to_page(self, point: QPoint | QPointF) -> QPointF:
        pad = self._padding()
        return QPointF(point.x() - pad.x(), point.y() - pad.y() + self.verticalScrollBar().value())

    def _from_page(self, rect: QRectF) -> QRect:
        pad = self._padding()
        return rect.translated(pad.x(), pad.y() - self.verticalScrollBar().value()).toAlignedRect()

    def _boxes(self, token: int | None) -> list[QRectF]:
        column = self._page.shown()
        return column.rects(token) if column and token is not None and token < len(column.text.tokens) else []

    def _reveal(self, top: float, height: float, around: int = 0) -> None:
        """Scroll no further than needed for that stretch of the page to be seen, with some room `around` it."""
        bar, pad = self.verticalScrollBar(), self._padding().y()
        low, high = round(top + height + 2 * pad - self.viewport().height()) + around, round(top) - around
        bar.setValue(max(min(bar.value(), high), low) if low <= high else high)

    def token_rect(self, token: int) -> QRect:
        """Where token `token` of the shown sequence is drawn first, in the viewport; empty when it is not."""
        boxes = self._boxes(token)
        return self._from_page(boxes[0]) if boxes else QRect()

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the rows in sight."""
        painter = QPainter(self.viewport())
        painter.fillRect(event.rect(), self._look.theme.color("window"))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if not self._has_text():
            paint_empty(painter, QRectF(self.viewport().rect()), self._look.theme, is_waiting(self._page.run))
            return
        corner = self._to_page(event.rect().topLeft())
        top, bottom = corner.y(), corner.y() + event.rect().height()
        painter.translate(-self._to_page(QPointF(0, 0)))
        for column in self._page.all_columns():
            self._paint_column(painter, column, top, bottom)

    def _paint_column(self, painter: QPainter, column: Column, top: float, bottom: float) -> None:
        run, look = self._page.run, self._look
        shown = run is not None and column.sequence == run.shown
        if self._page.side_by_side and column is not self._page.prompt:
            paint_heading(painter, column, run, look.theme, self._page.head, shown)
        look.selection = self._choice.in_column(column)
        selected, hovered, changed = look.selected, look.hovered, look.changed
        if not shown:
            look.selected, look.hovered, look.changed = None, None, frozenset()
        paint_rows(painter, column, look, top, bottom)
        look.selected, look.hovered, look.changed = selected, hovered, changed

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Break the rows anew."""
        super().resizeEvent(event)
        self._arrange()

    # Mouse

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin a click or a selection of text."""
        if event.button() != Qt.MouseButton.LeftButton or not self._has_text():
            return
        self.leave()
        place = self._to_page(event.position())
        column = self._page.nearest(place.x(), place.y())
        self._choice.begin(column, column.offset_at(place.x(), place.y()) if column else 0)
        self._pressed = event.position().toPoint()
        self.viewport().update()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Extend the selection, or tell of the token under the pointer."""
        place = self._to_page(event.position())
        if self._pressed is not None and self._choice.column is not None:
            moved = (event.position().toPoint() - self._pressed).manhattanLength()
            if moved >= QGuiApplication.styleHints().startDragDistance() or self._choice.head != self._choice.anchor:
                self._choice.head = self._choice.column.offset_at(place.x(), place.y())
                self._scroll_towards(event.position().y())
                self.viewport().update()
            return
        self._hover(place)

    def _scroll_towards(self, y: float) -> None:
        """Scroll while text is being selected beyond an edge."""
        bar = self.verticalScrollBar()
        if y < 0 or y > self.viewport().height():
            bar.setValue(bar.value() + (bar.singleStep() if y > 0 else -bar.singleStep()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click that selected no text picks the token."""
        if event.button() != Qt.MouseButton.LeftButton or self._pressed is None:
            return
        self._pressed = None
        if self._choice.head == self._choice.anchor:
            self._choice.begin(None, 0)
            self._click(self._to_page(event.position()))

    def _click(self, place: QPointF) -> None:
        run, column = self._page.run, self._page.column_at(place.x(), place.y())
        if run is None or column is None or column.sequence is None:
            return
        token = column.token_at(place.x(), place.y())
        if column.sequence != run.shown:
            self.sequenceActivated.emit(column.sequence)
        if token is not None:
            self.tokenActivated.emit(token)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Open the inspector on the token."""
        self.inspectorRequested.emit()

    def _hover(self, place: QPointF) -> None:
        run, column = self._page.run, self._page.column_at(place.x(), place.y())
        token = column.token_at(place.x(), place.y()) if column else None
        self.viewport().setCursor(Qt.CursorShape.IBeamCursor if column else Qt.CursorShape.ArrowCursor)
        shown = column is not None and run is not None and column.sequence == run.shown
        hovered = token if shown else None
        if hovered == self._look.hovered:
            return
        self.leave()
        self._look.hovered = hovered
        self.viewport().update()
        if hovered is not None:
            self._hover_timer.start()

    def leave(self) -> None:
        """Forget the token under the pointer."""
        self._look.hovered = None
        self._hover_timer.stop()
        self._popover.hide()
        self.viewport().update()

    @Slot()
    def _show_popover(self) -> None:
        run, token = self._page.run, self._look.hovered
        if run is None or token is None or token >= len(run.tokens) or not self.isVisible():
            return
        chosen = run.tokens[token]
        rect = self.token_rect(token)
        rect.moveTo(self.viewport().mapToGlobal(rect.topLeft()))
        vocabulary = run.started.vocabulary if run.started else 0
        self._popover.show_rows(token_text(chosen.piece), figures(chosen, vocabulary), rect)

    # Keyboard and clipboard

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Walk from token to token, with Shift select text; copy; open the inspector."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
        elif event.matches(QKeySequence.StandardKey.SelectAll):
            self.select_all()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not event.modifiers():
            self.inspectorRequested.emit()
        elif not self._walk(event):
            super().keyPressEvent(event)

    def _walk(self, event: QKeyEvent) -> bool:
        run, column = self._page.run, self._page.shown()
        modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if run is None or column is None or not run.cursor:
            return False
        page = max(1, self.viewport().height() // column.metrics.row - 1)
        if modifiers == Qt.KeyboardModifier.ShiftModifier and event.key() in KEYS:
            self._extend(column, Qt.Key(event.key()), run.selected, page)
            return True
        target = step(column, Qt.Key(event.key()), run.selected, run.cursor, page) if not modifiers else None
        if target is None:
            return False
        self._choice.begin(None, 0)
        self.tokenActivated.emit(target)
        return True

    def _extend(self, column: Column, key: Qt.Key, selected: int | None, page: int) -> None:
        """Move the end of the selection; the first press begins it at the picked token."""
        if self._choice.column is not column:
            self._choice.begin_at(column, selected, backwards=key in BACKWARDS)
        head = self._choice.head = extend(column, key, self._choice.head, page)
        self._reveal(column.row_top(column.flow.row_at(head)), column.metrics.row)
        self.viewport().update()

    def select_all(self) -> None:
        """Select everything that the shown sequence's column holds."""
        column = self._page.shown()
        if column is not None:
            self._choice.all_of(column)
            self.viewport().update()

    @Slot()
    def copy(self) -> None:
        """Copy the selected text, or else the picked token, exactly."""
        run = self._page.run
        text = self._choice.text
        if not text and run is not None and run.selected is not None:
            text = run.tokens[run.selected].text
        if text:
            QGuiApplication.clipboard().setText(text)

    @Slot()
    def copy_text(self) -> None:
        """Copy what was written, up to the cursor."""
        if self._page.run is not None:
            QGuiApplication.clipboard().setText(self._page.run.text)

    @Slot()
    def copy_with_prompt(self) -> None:
        """Copy the prompt and what was written."""
        column = self._page.prompt or self._page.shown()
        if self._page.run is not None and column is not None:
            prompt = column.text.copy(0, column.text.prompt_end)
            QGuiApplication.clipboard().setText(prompt + self._page.run.text)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Offer to copy."""
        self.leave()
        menu = self.context_menu()
        menu.popup(event.globalPos())

    def context_menu(self) -> QMenu:
        """The menu of the view; it deletes itself when it closes."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        entries = (("Copy", self.copy), ("Copy text", self.copy_text), ("Copy with prompt", self.copy_with_prompt))
        for title, slot in (*entries, ("Select all", self.select_all)):
            menu.addAction(title, slot).setEnabled(self._has_text())
        return menu

    # Accessibility

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Say where one is."""
        super().focusInEvent(event)
        self._announce()

    def _announce(self) -> None:
        run = self._page.run
        if run is None or not run.tokens:
            return
        place = run.selected if run.selected is not None else max(0, run.cursor - 1)
        self.setAccessibleDescription(spoken(run.tokens[place], place + 1, len(run.tokens)))
        column = self._page.shown()
        if QAccessible.isActive() and column is not None:
            QAccessible.updateAccessibility(QAccessibleTextCursorEvent(self, column.text.span(place)[0]))
