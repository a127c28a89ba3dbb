"""What of a run a picture shows: which text, how far, which token, round or node; a comparison beside it."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtWidgets import QAbstractButton

from app.album.picture import AlbumError, Picture
from app.start.window_waiting import next_value, wait_until_painted
from app.state.run import Run
from app.state.suggestions import unknown_name_message
from app.views.base import View
from app.views.branches.view import BranchesView
from app.views.compare.view import CompareView
from app.views.speculation.view import SpeculationView
from app.views.tokens.view import TokenView
from app.views.tree.view import TreeView
from app.window.main_window import MainWindow
from core import words
from resources.language import tr


async def apply_state(window: MainWindow, picture: Picture) -> None:
    """Point at what the table names. Raises AlbumProblem."""
    run = window.session.run
    if run is not None:
        _select_position(window, run, picture)
        await wait_until_painted(window)
        for column in window.parts.centre.columns:
            _apply_view_state(column.current_view, run, picture)
    for column in window.parts.centre.columns:
        await _compare(window, column.current_view, picture)


def _select_position(window: MainWindow, run: Run, picture: Picture) -> None:
    """The text, the cursor, the selected token."""
    session = window.session
    session.show_sequence(_check_limit("text", picture.text, len(run.sequences)) - 1)
    if picture.cursor is not None:
        session.move_cursor(_check_limit("cursor", picture.cursor, run.length))
    if picture.token is not None:
        session.select_token(_check_limit("token", picture.token, len(run.tokens)) - 1)


def _apply_view_state(view: View, run: Run, picture: Picture) -> None:
    """A view's own: colours, round, node."""
    match view:
        case TokenView() if picture.colours:
            view.set_colouring(picture.colours)
        case BranchesView() if picture.fit:
            view.canvas.navigation.fit()
        case SpeculationView():
            if picture.round is not None:
                view.show_round(_check_limit("round", picture.round, view.selection.count) - 1)
            if picture.node is not None:
                drafted = view.selection.entry.nodes if view.selection.entry is not None else ()
                nodes = ((node.node, node.piece) for node in drafted)
                view.canvas.selection.pick(_find_node(picture.node, nodes))
        case TreeView():
            if picture.node is not None:
                steps = run.beams.steps if run.beams is not None else ()
                nodes = ((c.node, c.piece) for step in steps for c in step.candidates)
                view.canvas.selection.pick(_find_node(picture.node, nodes))
            if picture.fit:
                view.canvas.navigation.fit()


def _find_node(target: int | str, nodes: Iterable[tuple[int, str]]) -> int:
    """The first node of that number, or of those words."""
    known = list(nodes)
    for number, piece in known:
        if target == number or (isinstance(target, str) and piece.strip() == target.strip()):
            return number
    raise AlbumError(
        tr("key “node”: there is no {wanted!r} among the {nodes} of this tree.").format(
            wanted=target, nodes=words.count(len(known), "node")
        )
    )


async def _compare(window: MainWindow, view: View, picture: Picture) -> None:
    """Have the compare view measure what is to be compared."""
    if not isinstance(view, CompareView) or not picture.comparison:
        return
    _choose_comparison(view, picture)
    if not view.setup.comparison().entries:
        raise _key_error("comparison", view.setup.unsupported_reason or tr("Nothing is chosen that could be compared."))
    view.compare_or_stop()
    while view.shows_side_runs:
        await next_value(window.session.measuringChanged)
    await wait_until_painted(window)


def _choose_comparison(view: CompareView, picture: Picture) -> None:
    """The kind of comparison, and the chips of what is compared. Raises AlbumProblem."""
    _find_button(view, "", "Segment", picture.comparison, "comparison").click()
    if not picture.compared:
        return
    for name in picture.compared:
        _find_button(view, _CHIP, "", name, "compared")
    for chip in view.setup.findChildren(QAbstractButton):
        is_chip = chip.objectName().startswith(_CHIP) and chip.isEnabled()
        if is_chip and chip.isChecked() != (chip.objectName().removeprefix(_CHIP) in picture.compared):
            chip.click()


_CHIP = "compare."


def _find_button(view: View, prefix: str, suffix: str, name: str, key: str) -> QAbstractButton:
    """The view's button of that name. Raises AlbumProblem."""
    found = view.findChild(QAbstractButton, f"{prefix}{name}{suffix}")
    if found is None:
        names = [button.objectName() for button in view.findChildren(QAbstractButton)]
        offered = [
            n[len(prefix) : len(n) - len(suffix)] for n in names if n.startswith(prefix) and n.endswith(suffix) and n
        ]
        raise _key_error(
            key, unknown_name_message("choice", name, offered) if offered else tr("There is nothing to choose there.")
        )
    return found


def _key_error(key: str, why: str) -> AlbumError:
    return AlbumError(tr("key “{key}”: {why}").format(key=key, why=why))


def _check_limit(key: str, number: int, maximum: int) -> int:
    """Raises AlbumProblem."""
    if number > maximum:
        raise AlbumError(
            tr("key “{key}”: there is no number {number:,}; the run has {most:,}.").format(
                key=key, number=number, most=maximum
            )
        )
    return number
