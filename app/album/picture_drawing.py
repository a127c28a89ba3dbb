"""Draw the pictures of an album: open a window for each, prepare its run and its views, and save it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtWidgets import QAbstractButton

from decodescope.app import build_window
from decodescope.app.album.picture import PANELS, AlbumError, Picture, check_target
from decodescope.app.session.engine import Engine
from decodescope.app.session.engine_proxy import DeterministicEngine
from decodescope.app.session.engine_router import EngineRouter
from decodescope.app.start.cli import CommandLineOptions
from decodescope.app.start.launch import show_recorded
from decodescope.app.start.output_files import PictureError, hide_transient_state, save_window_picture
from decodescope.app.start.window_waiting import (
    LaunchProblem,
    next_value,
    redraw_from_scratch,
    run_to_end,
    wait_until_loaded,
    wait_until_painted,
    wait_until_settled,
)
from decodescope.app.state import setting_values
from decodescope.app.state.branching import TokenReplacement
from decodescope.app.state.run import Run
from decodescope.app.state.suggestions import truncate_name, unknown_name_message
from decodescope.app.storage import examples
from decodescope.app.storage.json_files import StorageError
from decodescope.app.storage.settings_file import SettingsStore
from decodescope.app.views.base import View
from decodescope.app.views.branches.view import BranchesView
from decodescope.app.views.compare.view import CompareView
from decodescope.app.views.speculation.view import SpeculationView
from decodescope.app.views.tokens.view import TokenView
from decodescope.app.views.tree.view import TreeView
from decodescope.app.window.main_window import MainWindow
from decodescope.core import caches, words
from decodescope.core.checks.name_suggestions import did_you_mean, known_names_sentence
from decodescope.core.errors import FileNotWrittenError
from decodescope.core.strategies import Parameter
from decodescope.core.system.file_writing import temporary_folder
from decodescope.resources.language import tr


async def prepare_run(window: MainWindow, picture: Picture) -> None:
    """Apply the settings, show the views, and run. Raises AlbumError, LaunchProblem."""
    parts = window.parts
    if picture.trace is None:
        _apply_settings(window, picture)
    else:
        parts.loading.pause()
        parts.memory_fit.pause()
    window.show()
    await wait_until_painted(window)
    if picture.trace is not None:
        show_recorded(window, CommandLineOptions(recorded=picture.trace, still=picture.still))
    else:
        await (run_to_end(window) if picture.run else wait_until_loaded(window))
    first = window.session.run
    for token, text in picture.instead:
        if first is not None:
            await _branch(window, first, token, text)
    _show_views(window, picture)
    await wait_until_painted(window)


def _show_views(window: MainWindow, picture: Picture) -> None:
    centre = window.parts.centre
    centre.show_view(picture.views[0])
    if picture.split:
        centre.split_button.setChecked(True)
        centre.columns[1].show_view(picture.split[1])


async def _branch(window: MainWindow, first: Run, token: int, words: str) -> None:
    """Branch from a token of the first run with other text. Raises AlbumError."""
    if token > len(first.tokens):
        raise AlbumError(
            tr("key “instead”: there is no token {token}; the run has {count}.").format(
                token=token, count=len(first.tokens)
            )
        )
    window.session.show(first)
    ended = asyncio.ensure_future(next_value(window.session.finished))
    await asyncio.sleep(0)  # let it connect first
    window.parts.runs.branch(TokenReplacement(token - 1, words))
    await ended
    await wait_until_painted(window)


def _apply_settings(window: MainWindow, picture: Picture) -> None:
    parts = window.parts
    if picture.example:
        parts.settings_controller.apply_example(
            next(one for one in examples.load_examples() if one.id == picture.example)
        )
    problems = parts.settings_controller.choose(picture.model, picture.strategy, picture.cache, picture.drafts)
    if problems:
        raise AlbumError(" ".join(problems))
    strategy, cache = parts.chosen.strategy.strategy, parts.chosen.cache
    backend = caches.registry[cache.name]
    parts.settings_controller.update_values(
        _validate_settings(tr(strategy.title), strategy.parameters, picture.parameters)
    )
    cache.parameters.set_values(_validate_settings(tr(backend.title), backend.parameters, picture.cache_parameters))
    if picture.prompt is not None:
        parts.setup.prompt.set_prompt(picture.prompt, picture.chat)
    _lock_seed(window, picture)


def _lock_seed(window: MainWindow, picture: Picture) -> None:
    """Lock the seed. Without a `seed` key it is the example's or the default, never a random one."""
    seed = window.parts.toolbar.seed
    if picture.seed is not None:
        seed.spin.setValue(picture.seed)
    seed.lock_button.setChecked(True)


def _validate_settings(title: str, parameters: tuple[Parameter, ...], values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Check that each setting has a valid value. Raises AlbumError."""
    known = {parameter.name: parameter for parameter in parameters}
    for name, value in values.items():
        if name not in known:
            raise AlbumError(
                tr("{title} has no setting “{name}”.{near} {names}").format(
                    title=title,
                    name=truncate_name(name),
                    near=did_you_mean(name, known),
                    names=known_names_sentence(name, known),
                )
            )
        if reason := setting_values.invalid_reason(known[name], value):
            raise AlbumError(f"{title}: {reason}")
    return values


async def apply_state(window: MainWindow, picture: Picture) -> None:
    """Select everything that the table names. Raises AlbumError."""
    run = window.session.run
    if run is not None:
        _select_position(window, run, picture)
        await wait_until_painted(window)
        for column in window.parts.centre.columns:
            _apply_view_state(column.current_view, run, picture)
    for column in window.parts.centre.columns:
        await _compare(window, column.current_view, picture)


def _select_position(window: MainWindow, run: Run, picture: Picture) -> None:
    """Select the sequence, the cursor position and the token."""
    session = window.session
    session.show_sequence(_check_limit("text", picture.text, len(run.sequences)) - 1)
    if picture.cursor is not None:
        session.move_cursor(_check_limit("cursor", picture.cursor, run.length))
    if picture.token is not None:
        session.select_token(_check_limit("token", picture.token, len(run.tokens)) - 1)


def _apply_view_state(view: View, run: Run, picture: Picture) -> None:
    """Apply the state specific to one view: colouring, round, node."""
    match view:
        case TokenView() if picture.colours:
            view.set_colouring(picture.colours)
        case BranchesView() if picture.fit:
            view.canvas.navigation.keep_readable()
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
                view.canvas.navigation.keep_readable()


def _find_node(target: int | str, nodes: Iterable[tuple[int, str]]) -> int:
    """Return the first node with that number or text. Raises AlbumError."""
    known = list(nodes)
    for number, piece in known:
        if target == number or (isinstance(target, str) and piece.strip() == target.strip()):
            return number
    raise AlbumError(
        tr("key “node”: {wanted!r} is not among the {nodes} of this tree.").format(
            wanted=target, nodes=words.count(len(known), "node")
        )
    )


async def _compare(window: MainWindow, view: View, picture: Picture) -> None:
    """Run the comparison in the compare view and wait until it is done."""
    if not isinstance(view, CompareView) or not picture.comparison:
        return
    _choose_comparison(view, picture)
    if not view.setup.comparison().entries:
        raise _key_error("comparison", view.setup.unsupported_reason or tr("No item is selected for comparison."))
    view.compare_or_stop()
    while view.shows_side_runs:
        await next_value(window.session.measuringChanged)
    await wait_until_painted(window)


def _choose_comparison(view: CompareView, picture: Picture) -> None:
    """Select the kind of comparison and the chips of the compared items. Raises AlbumError."""
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
    """Return the view's button called `name`. Raises AlbumError."""
    found = view.findChild(QAbstractButton, f"{prefix}{name}{suffix}")
    if found is None:
        names = [button.objectName() for button in view.findChildren(QAbstractButton)]
        offered = [
            n[len(prefix) : len(n) - len(suffix)] for n in names if n.startswith(prefix) and n.endswith(suffix) and n
        ]
        raise _key_error(key, unknown_name_message("choice", name, offered) if offered else tr("There are no choices."))
    return found


def _key_error(key: str, why: str) -> AlbumError:
    return AlbumError(tr("key “{key}”: {why}").format(key=key, why=why))


def _check_limit(key: str, number: int, maximum: int) -> int:
    """Return `number` if it is at most the maximum. Raises AlbumError otherwise."""
    if number > maximum:
        raise AlbumError(
            tr("key “{key}”: {number:,} is too large; the run has {most:,}.").format(
                key=key, number=number, most=maximum
            )
        )
    return number


async def draw_album(pictures: Sequence[Picture], engine: Engine | None = None) -> int:
    """Draw and save all pictures, and return the exit code.

    A picture that fails is reported and skipped. Pictures with the same model follow each other, so that each model is
    loaded once. Tests pass `engine` in place of the real engine.
    """
    shared, failed = engine or EngineRouter(), 0
    for picture in sorted(pictures, key=lambda picture: picture.model):
        try:
            await _draw_picture(picture, DeterministicEngine(shared) if picture.still else shared)
        except (AlbumError, LaunchProblem, PictureError, FileNotWrittenError, StorageError) as problem:
            failed += 1
            print(f"decodescope: {picture.label}: {problem}", file=sys.stderr)
    return 1 if failed else 0


async def _draw_picture(picture: Picture, engine: Engine) -> None:
    with temporary_folder() as folder:
        _write_settings(folder, picture)
        window = build_window(folder, engine, assembled=False)
        window.assemble()
        window.firstPainted.disconnect(window.parts.centre.create_remaining_views)  # the other views are never shown
        try:
            await _prepare_window(window, picture)
            _recheck_target(picture.out)
            save_window_picture(window, picture.out, picture.scale)
        finally:
            window.close()  # stops its worker; the engine is reused by the next window
            window.deleteLater()


def _recheck_target(path: Path) -> None:
    """Refuse to replace a file that was created after the script was read. Raises AlbumError."""
    try:
        check_target(path, None)
    except ValueError as problem:
        raise AlbumError(str(problem)) from None


def _write_settings(folder: Path, picture: Picture) -> None:
    """Write the settings before the window opens, which is faster than changing its appearance afterwards."""
    store = SettingsStore(folder)
    look, layout = store.settings.appearance, store.settings.layout
    look.theme, look.font_scale, look.language = picture.theme, picture.font_scale, picture.language
    layout.setup, layout.inspector, layout.timeline = (panel not in picture.hide for panel in PANELS)
    store.save()


async def _prepare_window(window: MainWindow, picture: Picture) -> None:
    """Bring the window into the state that the picture shows."""
    window.resize(*picture.size)
    await prepare_run(window, picture)
    await wait_until_settled(window)
    if picture.still:
        await redraw_from_scratch(window)
    await apply_state(window, picture)
    await wait_until_settled(window)
    if picture.still:
        hide_transient_state(window)
    await wait_until_painted(window)
