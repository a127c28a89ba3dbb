"""The parts around the tree: its tools, the search field, and the legend."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QPointF, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QAction, QActionGroup, QFontMetricsF, QKeyEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QMenu, QToolButton, QWidget

from decodescope.app.theme.theme import Theme, theme_for
from decodescope.app.theme.themed import Themed
from decodescope.app.widgets.accessibility import AccessibleWidget
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.icons import IconButton
from decodescope.app.widgets.plain_text import PlainLabel, caption, from_plain_text, tooltip
from decodescope.app.widgets.tree_canvas import PRUNED, TreeCanvas
from decodescope.app.widgets.tree_canvas.tree_style import DASHED, STAR, STRUCK, TreeStyle, dashed_pen, node_outline
from decodescope.resources.language import join_sentences, mark, tr, trc

_MODE_TITLES = {"shown": mark("shown"), "dimmed": mark("dimmed"), "hidden": mark("hidden")}


class TreeTools(Themed, QWidget):
    """Widget at the right end of the tab bar; tools that do not fit move into a menu."""

    prunedChosen = Signal(str)
    fitWanted = Signal()
    findWanted = Signal()
    followToggled = Signal(bool)
    downToggled = Signal(bool)
    tableToggled = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._faint_title = tr("Pruned")
        self.pruned = self._button("prunedButton", "", "")
        self.pruned.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.pruned.setMenu(self._pruned_menu())
        self.follow = self._button("followButton", tr("Follow"), tr("Keep the newest tokens visible"), checkable=True)
        self.fit = self._button(
            "fitButton", tr("Fit"), tr("Show the whole tree; press again for a part that can be read")
        )
        self.search = self._button("findButton", tr("Find"), tr("Find a token (or just type)"))
        self.table = self._button("tableButton", tr("Table"), tr("Show the table of hypotheses"), checkable=True)
        self.down = self._button("downButton", "↓", tr("Grow the tree downwards"), checkable=True)
        self.more = self._button("moreButton", "⋯", tr("More tools"))
        self.more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.more.setMenu(QMenu(self))
        self.more.menu().aboutToShow.connect(self._fill_more_menu)
        self.table.setChecked(True)
        self._row = arrange(QHBoxLayout(self), *self._buttons, self.more, margins=0, spacing=2)
        self._connect()
        self.set_pruned("dimmed", tr("Pruned"), tr("Pruned branches: shown, dimmed or hidden"))

    @property
    def _buttons(self) -> tuple[QToolButton, ...]:
        """The tools in order of appearance; the last ones are hidden first."""
        return self.pruned, self.fit, self.follow, self.search, self.table, self.down

    def _connect(self) -> None:
        self.fit.clicked.connect(self.fitWanted)
        self.search.clicked.connect(self.findWanted)
        self.follow.toggled.connect(self.followToggled)
        self.down.toggled.connect(self.downToggled)
        self.table.toggled.connect(self.tableToggled)

    def _button(self, name: str, text: str, help_text: str, checkable: bool = False) -> QToolButton:
        button = set_up(QToolButton(self), name=name, tooltip=tooltip(help_text), accessible_name=help_text)
        button.setText(text)
        button.setCheckable(checkable)
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        return button

    def _pruned_menu(self) -> QMenu:
        menu = QMenu(self)
        self._group = QActionGroup(menu)
        for how in PRUNED:
            action = menu.addAction(tr(_MODE_TITLES[how]).capitalize())
            action.setCheckable(True)
            action.setData(how)
            self._group.addAction(action)
        self._group.triggered.connect(self._on_action)
        return menu

    def set_pruned(self, mode: str, title: str = "", help_text: str = "") -> None:
        """Show the current mode without emitting a signal; `title` is the title of this tree's faint nodes."""
        self._faint_title = title or self._faint_title
        self.pruned.setText(tr("{which}: {how} ⌄").format(which=self._faint_title, how=tr(_MODE_TITLES[mode])))
        if help_text:
            self.pruned.setToolTip(tooltip(help_text))
            self.pruned.setAccessibleName(help_text)
        for action in self._group.actions():
            action.setChecked(action.data() == mode)
        self.updateGeometry()
        self._update_visible_tools()

    def restyle(self, theme: Theme) -> None:
        for button in self.findChildren(QToolButton):
            button.setFont(theme.font(12))

    # Geometry

    def _width(self, count: int) -> int:
        """Return the width of the first `count` tools, including the menu of the others."""
        shown = [*self._buttons[:count], *([self.more] if count < len(self._buttons) else [])]
        return sum(button.sizeHint().width() for button in shown) + self._row.spacing() * (len(shown) - 1)

    def sizeHint(self) -> QSize:
        """Return the size of all tools."""
        return QSize(self._width(len(self._buttons)), self.pruned.sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        """Return the size of the menu button."""
        return QSize(self._width(0), self.pruned.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Update the visible tools for a new width."""
        super().resizeEvent(event)
        self._update_visible_tools()

    def _update_visible_tools(self) -> None:
        """Show as many tools as fit."""
        fitting = [count for count in range(len(self._buttons) + 1) if self._width(count) <= self.width()]
        count = max(fitting, default=0)
        for place, button in enumerate(self._buttons):
            button.setVisible(place < count)
        self.more.setVisible(count < len(self._buttons))

    @Slot()
    def _fill_more_menu(self) -> None:
        menu = self.more.menu()
        menu.clear()
        self._add_tools(menu, [button for button in self._buttons if button.isHidden()])

    def add_to_menu(self, menu: QMenu) -> None:
        """Add all tools to a context menu."""
        self._add_tools(menu, self._buttons)

    def _add_tools(self, menu: QMenu, buttons: Sequence[QToolButton]) -> None:
        for button in buttons:
            if menu.actions() and menu.actions()[-1] in self._group.actions():
                menu.addSeparator()
            if button is self.pruned:
                menu.addActions(self._group.actions())
                continue
            action = menu.addAction(caption(from_plain_text(button.toolTip())), button.click)
            action.setCheckable(button.isCheckable())
            action.setChecked(button.isChecked())

    @Slot(QAction)
    def _on_action(self, action: QAction) -> None:
        self.set_pruned(action.data())
        self.prunedChosen.emit(action.data())


class FindBar(Themed, QFrame):
    """Search field with buttons. Signals: `changed(text)`, `moved(by)` to the next or previous match, `closed()`."""

    changed = Signal(str)
    moved = Signal(int)
    closed = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("findBar")
        self.field = QLineEdit(self, placeholderText=tr("Find a token"))
        self.field.setObjectName("findField")
        self.field.setAccessibleName(tr("Find a token"))
        self.count = set_up(PlainLabel("", self), role="muted")
        self.back = IconButton("step-back", tr("Previous"), self)
        self.forward = IconButton("step-forward", trc("of what was found", "Next"), self)
        self.close_button = IconButton("close", tr("Close (Esc)"), self)
        row = arrange(QHBoxLayout(self), margins=(6, 5, 6, 5), spacing=3)
        arrange(row, self.field, self.count, self.back, self.forward, self.close_button)
        self.field.textChanged.connect(self.changed)
        self.back.clicked.connect(self._previous)
        self.forward.clicked.connect(self._next)
        self.close_button.clicked.connect(self.closed)
        self._area = parent
        parent.installEventFilter(self)
        self.hide()

    def restyle(self, theme: Theme) -> None:
        self.field.setMinimumWidth(theme.px(130))
        self.setStyleSheet(
            f"QFrame#findBar {{ background: {theme.panel}; border: 1px solid {theme.line}; border-radius: 9px; }}"
        )

    def show_count(self, index: int, total: int) -> None:
        """Show the match count: `3 of 12`."""
        found = tr("{place:,} of {total:,}").format(place=index, total=total)
        self.count.setText(found if total else tr("no matches") if self.field.text() else "")
        self.move_to_corner()

    def move_to_corner(self) -> None:
        """Move to the upper right corner of the parent."""
        self.adjustSize()
        self.move(self._area.width() - self.width() - 12, 10)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Keep the position when the parent is resized."""
        if watched is self._area and event.type() == QEvent.Type.Resize:
            self.move_to_corner()
        return False

    def event(self, event: QEvent) -> bool:
        """Let Escape close the field before it stops a run."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.ShortcutOverride:
            if event.key() == Qt.Key.Key_Escape:
                event.accept()
                return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Handle Enter (next), Shift+Enter (previous), the arrow keys, and Escape (close)."""
        if event.key() == Qt.Key.Key_Escape:
            self.closed.emit()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.moved.emit(-1 if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 1)
        elif event.key() in (Qt.Key.Key_Up, Qt.Key.Key_Down):
            self.moved.emit(-1 if event.key() == Qt.Key.Key_Up else 1)
        else:
            super().keyPressEvent(event)

    @Slot()
    def _previous(self) -> None:
        self.moved.emit(-1)

    @Slot()
    def _next(self) -> None:
        self.moved.emit(1)


CELL = "cell"
"""Mark of a legend that is no node: a grey cell of the strip of rounds."""


class TreeLegend(Themed, QWidget, AccessibleWidget):
    """The legend of the tree on one line; entries that do not fit are omitted."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._entries: Sequence[tuple[str, str]] = ()
        self._hint = ""
        self._style = TreeStyle(theme_for("light"), pruned="shown")

    def show_marks(self, entries: Sequence[tuple[str, str]], hint: str) -> None:
        """Show the entries (state, word marked for translation) and the hint, marked as well."""
        self._entries, self._hint = [(state, tr(word)) for state, word in entries], tr(hint)
        marks = ", ".join(word for _, word in self._entries)
        self.setAccessibleName(join_sentences(tr("Tree legend: {marks}.").format(marks=marks), self._hint))
        self.update()

    def restyle(self, theme: Theme) -> None:
        self._style.set_theme(theme)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        """Return the size of one line of small type."""
        return QSize(self._style.theme.px(200), self._style.theme.px(30))

    def minimumSizeHint(self) -> QSize:
        """Return the minimum size; entries that do not fit are omitted."""
        return QSize(self._style.theme.px(80), self._style.theme.px(30))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the marks and words."""
        theme, painter = self._style.theme, QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(theme.font(12))
        fm = QFontMetricsF(painter.font())
        x = float(theme.px(16))
        for state, word in self._entries:
            width = theme.px(24) + theme.px(6) + fm.horizontalAdvance(word)
            if x + width > self.width() - theme.px(8):
                return
            self._paint_mark(painter, state, QRectF(x, self.height() / 2 - theme.px(6), theme.px(24), theme.px(12)))
            painter.setPen(theme.color("muted"))
            painter.drawText(QPointF(x + theme.px(30), self._baseline(fm)), word)
            x += width + theme.px(18)
        if x + fm.horizontalAdvance(self._hint) <= self.width() - theme.px(8):
            painter.drawText(QPointF(x, self._baseline(fm)), self._hint)

    def _baseline(self, fm: QFontMetricsF) -> float:
        return self.height() / 2 + fm.capHeight() / 2

    def _paint_mark(self, painter: QPainter, state: str, box: QRectF) -> None:
        theme = self._style.theme
        if state == CELL:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("pruned"))
            painter.drawRoundedRect(box.adjusted(0, theme.px(3), 0, -theme.px(3)), 2, 2)
            return
        painter.setBrush(theme.color("panel"))
        pen = QPen(self._style.state_colour(state), (2.2 if state == "best" else 1.4) * theme.scale)
        painter.setPen(dashed_pen(pen) if state in DASHED else pen)
        painter.drawPath(node_outline(state, box, theme.px(4)))
        if state in STRUCK:
            painter.drawLine(box.center() - QPointF(6, 0), box.center() + QPointF(6, 0))
        if state == "best":
            painter.setPen(self._style.state_colour("best"))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, STAR)


class TreeFinder(QObject):
    """Connect a canvas with its search field."""

    def __init__(self, canvas: TreeCanvas, bar: FindBar) -> None:
        super().__init__(bar)
        self._canvas, self._bar = canvas, bar
        self.matches: list[int] = []
        bar.changed.connect(self._search)
        bar.moved.connect(self.select_match)
        bar.closed.connect(self.close)

    @Slot()
    def open(self) -> None:
        """Show the search field, ready for typing."""
        self._bar.show()
        self._bar.move_to_corner()
        self._bar.raise_()
        self._bar.field.setFocus()
        self._bar.field.selectAll()

    @Slot(str)
    def open_with_text(self, text: str) -> None:
        """Show the search field with its first character."""
        self.open()
        self._bar.field.setText(text)

    @Slot()
    def close(self) -> None:
        """Hide the search field and keep the selection."""
        if self._bar.isHidden():
            return
        self._bar.hide()
        self._bar.field.clear()
        self._canvas.selection.set_search_matches(())
        self._canvas.setFocus()

    @Slot(str)
    def _search(self, text: str) -> None:
        scene = self._canvas.canvas_state.scene
        self.matches = scene.model.search(text, scene.max_depth)
        self._canvas.selection.set_search_matches(self.matches)
        if self.matches and self._canvas.selection.selected not in self.matches:
            self.select_match(1)
        else:
            self._update_count()

    @Slot(int)
    def select_match(self, offset: int) -> None:
        """Go to the next or previous match, wrapping around."""
        if not self.matches:
            self._update_count()
            return
        here = self._canvas.selection.selected
        place = self.matches.index(here) + offset if here in self.matches else 0 if offset > 0 else -1
        self._canvas.navigation.set_follow(False)
        self._canvas.selection.pick(self.matches[place % len(self.matches)])
        self._update_count()

    def _update_count(self) -> None:
        here = self._canvas.selection.selected
        self._bar.show_count(self.matches.index(here) + 1 if here in self.matches else 0, len(self.matches))
