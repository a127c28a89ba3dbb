"""What of a run a picture shows: which text, how far, which token, round or node; a comparison beside it."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtWidgets import QAbstractButton

from app.album.picture import AlbumProblem, Picture
from app.start.window_waiting import next_value, painted
from app.state.run import Run
from app.state.suggestions import unknown
from app.views.base import View
from app.views.branches.view import BranchesView
from app.views.compare.view import CompareView
from app.views.speculation.view import SpeculationView
from app.views.tokens.view import TokenView
from app.views.tree.view import TreeView
from app.window.main_window import MainWindow
from core import words
from resources.language import tr


async def pose(window: MainWindow, picture: Picture) -> None:
    """Point at what the table names. Raises AlbumProblem."""
    run = window.session.run
    if run is not None:
        _place(window, run, picture)
        await painted(window)
        for column in window.parts.centre.columns:
            _point(column.shown, run, picture)
    for column in window.parts.centre.columns:
        await _compare(window, column.shown, picture)


def _place(window: MainWindow, run: Run, picture: Picture) -> None:
    """The text, the cursor, the selected token."""
    session = window.session
    session.show_sequence(_within("text", picture.text, len(run.sequences)) - 1)
    if picture.cursor is not None:
        session.move_cursor(_within("cursor", picture.cursor, run.length))
    if picture.token is not None:
        session.select_token(_within("token", picture.token, len(run.tokens)) - 1)


def _point(view: View, run: Run, picture: Picture) -> None:
    """A view's own: colours, round, node."""
    match view:
        case TokenView() if picture.colours:
            view.set_colouring(picture.colours)
        case BranchesView() if picture.fit:
            view.canvas.travel.fit()
        case SpeculationView():
            if picture.round is not None:
                view.show_round(_within("round", picture.round, view.place.count) - 1)
            if picture.node is not None:
                drafted = view.place.entry.nodes if view.place.entry is not None else ()
                nodes = ((node.node, node.piece) for node in drafted)
                view.canvas.selection.pick(_node(picture.node, nodes))
        case TreeView():
            if picture.node is not None:
                steps = run.beams.steps if run.beams is not None else ()
                nodes = ((c.node, c.piece) for step in steps for c in step.candidates)
                view.canvas.selection.pick(_node(picture.node, nodes))
            if picture.fit:
                view.canvas.travel.fit()


def _node(wanted: int | str, nodes: Iterable[tuple[int, str]]) -> int:
    """The first node of that number, or of those words."""
    known = list(nodes)
    for number, piece in known:
        if wanted == number or (isinstance(wanted, str) and piece.strip() == wanted.strip()):
            return number
    raise AlbumProblem(
        tr("key “node”: there is no {wanted!r} among the {nodes} of this tree.").format(
            wanted=wanted, nodes=words.count(len(known), "node")
        )
    )


async def _compare(window: MainWindow, view: View, picture: Picture) -> None:
    """Have the compare view measure what is to be compared."""
    if not isinstance(view, CompareView) or not picture.comparison:
        return
    _choose(view, picture)
    if not view.setup.comparison().entries:
        raise _problem("comparison", view.setup.refusal or tr("Nothing is chosen that could be compared."))
    view.compare_or_stop()
    while view.is_comparing:
        await next_value(window.session.measuringChanged)
    await painted(window)


def _choose(view: CompareView, picture: Picture) -> None:
    """The kind of comparison, and the chips of what is compared. Raises AlbumProblem."""
    _named(view, "", "Segment", picture.comparison, "comparison").click()
    if not picture.compared:
        return
    for name in picture.compared:
        _named(view, _CHIP, "", name, "compared")
    for chip in view.setup.findChildren(QAbstractButton):
        is_chip = chip.objectName().startswith(_CHIP) and chip.isEnabled()
        if is_chip and chip.isChecked() != (chip.objectName().removeprefix(_CHIP) in picture.compared):
            chip.click()


_CHIP = "compare."


def _named(view: View, head: str, tail: str, name: str, key: str) -> QAbstractButton:
    """The view's button of that name. Raises AlbumProblem."""
    found = view.findChild(QAbstractButton, f"{head}{name}{tail}")
    if found is None:
        names = [button.objectName() for button in view.findChildren(QAbstractButton)]
        offered = [n[len(head) : len(n) - len(tail)] for n in names if n.startswith(head) and n.endswith(tail) and n]
        raise _problem(key, unknown("choice", name, offered) if offered else tr("There is nothing to choose there."))
    return found


def _problem(key: str, why: str) -> AlbumProblem:
    return AlbumProblem(tr("key “{key}”: {why}").format(key=key, why=why))


def _within(key: str, number: int, most: int) -> int:
    """Raises AlbumProblem."""
    if number > most:
        raise AlbumProblem(
            tr("key “{key}”: there is no number {number:,}; the run has {most:,}.").format(
                key=key, number=number, most=most
            )
        )
    return number
