"""The menu of a node: a run that goes on from there, whatever became of the node."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication
from PySide6.QtWidgets import QMenu

from app.state.branching import Continuation, is_held_to
from app.state.run import Run
from app.views.base import ViewSignals
from app.views.tree.tree_content import TreeContent
from app.widgets.plain_text import caption
from app.widgets.tree_canvas import TreeCanvas
from core import words
from resources.language import tr

Shown = Callable[[], tuple[Run | None, TreeContent | None]]


class NodeMenu(QObject):
    """Listens to the canvas; `shown` says which run's tree stands on it, `grammar` what a new run would be held to."""

    def __init__(self, canvas: TreeCanvas, signals: ViewSignals, shown: Shown, grammar: Callable[[], object]) -> None:
        super().__init__(canvas)
        self._canvas, self._signals, self._shown, self._grammar = canvas, signals, shown, grammar
        canvas.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Open the menu of the node that is meant: under the pointer, or the selected one."""
        if not isinstance(event, QContextMenuEvent):
            return False
        by_key = event.reason() == QContextMenuEvent.Reason.Keyboard
        node = self._canvas.selection.selected if by_key else self._canvas.stage.places.node_at(event.pos())
        if node is None or (menu := self.menu(node)) is None:
            return False
        place = self._canvas.stage.places.node_rect(node).bottomLeft() if by_key else event.pos()
        menu.popup(self._canvas.mapToGlobal(place))
        return True

    def menu(self, node: int) -> QMenu | None:
        """What can be done with a node; it deletes itself when it closes. None where nothing can."""
        run, content = self._shown()
        onward = onward_from(run, content, node)
        if run is None or content is None or onward is None:
            return None
        menu = QMenu(self._canvas)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        name = words.quote(content.last_word(node), False)
        onwards = partial(self._signals.branchWanted.emit, onward)
        if _ends(run, node) and is_held_to(run, self._grammar()):
            menu.addAction(caption(tr("{name}: the grammar lets nothing follow it").format(name=name))).setEnabled(
                False
            )
        else:
            menu.addAction(caption(tr("Continue from {name}").format(name=name)), onwards)
        menu.addAction(tr("Copy the text up to here"), partial(QGuiApplication.clipboard().setText, content.text(node)))
        return menu


def _ends(run: Run, node: int) -> bool:
    """Whether a text of a beam search ended there by itself."""
    return run.beams is not None and node in run.beams and run.beams.candidate(node).ended == "eos"


def onward_from(run: Run | None, content: TreeContent | None, node: int) -> Continuation | None:
    """The path to a node as what a run can go on from; None for the prompt's end."""
    ids = content.ids(node) if content is not None else ()
    if run is None or not ids:
        return None
    shown = [token.id for token in run.tokens]
    pairs = enumerate(zip(ids, shown, strict=False))
    shared = next((n for n, (one, other) in pairs if one != other), min(len(ids), len(shown)))
    return Continuation(ids, min(shared, len(ids) - 1))
