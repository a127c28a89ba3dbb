"""The menu of a node: a run that goes on from there, whatever became of the node."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication
from PySide6.QtWidgets import QMenu

from app.state.branching import PathContinuation, is_constrained_to
from app.state.run import Run
from app.views.base import ViewSignals
from app.views.tree.tree_content import TreeContent
from app.widgets.plain_text import caption
from app.widgets.tree_canvas import TreeCanvas
from core import words
from resources.language import tr

DisplayedContent = Callable[[], tuple[Run | None, TreeContent | None]]


class NodeMenu(QObject):
    """Listens to the canvas; `shown` says which run's tree stands on it, `grammar` what a new run would be held to."""

    def __init__(
        self, canvas: TreeCanvas, signals: ViewSignals, shown: DisplayedContent, grammar: Callable[[], object]
    ) -> None:
        super().__init__(canvas)
        self._canvas, self._signals, self._shown, self._grammar = canvas, signals, shown, grammar
        canvas.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Open the menu of the node that is meant: under the pointer, or the selected one."""
        if not isinstance(event, QContextMenuEvent):
            return False
        by_key = event.reason() == QContextMenuEvent.Reason.Keyboard
        node = self._canvas.selection.selected if by_key else self._canvas.canvas_state.positions.node_at(event.pos())
        if node is None or (menu := self.create_menu(node)) is None:
            return False
        place = self._canvas.canvas_state.positions.node_rect(node).bottomLeft() if by_key else event.pos()
        menu.popup(self._canvas.mapToGlobal(place))
        return True

    def create_menu(self, node: int) -> QMenu | None:
        """What can be done with a node; it deletes itself when it closes. None where nothing can."""
        run, content = self._shown()
        continuation = continuation_from(run, content, node)
        if run is None or content is None or continuation is None:
            return None
        menu = QMenu(self._canvas)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        name = words.quote(content.last_text(node), False)
        continue_from_node = partial(self._signals.branchRequested.emit, continuation)
        if _is_finished(run, node) and is_constrained_to(run, self._grammar()):
            menu.addAction(caption(tr("{name}: the grammar lets nothing follow it").format(name=name))).setEnabled(
                False
            )
        else:
            menu.addAction(caption(tr("Continue from {name}").format(name=name)), continue_from_node)
        menu.addAction(tr("Copy the text up to here"), partial(QGuiApplication.clipboard().setText, content.text(node)))
        return menu


def _is_finished(run: Run, node: int) -> bool:
    """Whether a text of a beam search ended there by itself."""
    return run.beams is not None and node in run.beams and run.beams.candidate(node).ended == "eos"


def continuation_from(run: Run | None, content: TreeContent | None, node: int) -> PathContinuation | None:
    """The path to a node as what a run can go on from; None for the prompt's end."""
    ids = content.ids(node) if content is not None else ()
    if run is None or not ids:
        return None
    shown = [token.id for token in run.tokens]
    pairs = enumerate(zip(ids, shown, strict=False))
    shared = next((n for n, (one, other) in pairs if one != other), min(len(ids), len(shown)))
    return PathContinuation(ids, min(shared, len(ids) - 1))
