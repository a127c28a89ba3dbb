"""What a picture is taken of: everything set as its table says, and run."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from app.album.picture import AlbumError, Picture
from app.start.cli import CommandLineOptions
from app.start.launch import show_recorded
from app.start.window_waiting import next_value, run_to_end, wait_until_loaded, wait_until_painted
from app.state import setting_values
from app.state.branching import TokenReplacement
from app.state.run import Run
from app.state.suggestions import truncate_name
from app.storage import examples
from app.window.main_window import MainWindow
from core import caches
from core.strategies import Parameter
from core.suggestions import did_you_mean
from resources.language import tr


async def prepare_run(window: MainWindow, picture: Picture) -> None:
    """Set what is to be run, show the views, and run. Raises AlbumProblem, LaunchProblem."""
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
    for token, words in picture.instead:
        if first is not None:
            await _branch(window, first, token, words)
    _show_views(window, picture)
    await wait_until_painted(window)


def _show_views(window: MainWindow, picture: Picture) -> None:
    centre = window.parts.centre
    centre.show_view(picture.views[0])
    if picture.split:
        centre.split_button.setChecked(True)
        centre.columns[1].show_view(picture.split[1])


async def _branch(window: MainWindow, first: Run, token: int, words: str) -> None:
    """Go on from a place of the first run's text with other words. Raises AlbumProblem."""
    if token > len(first.tokens):
        raise AlbumError(
            tr("key “instead”: there is no token {token}; the run has {count}.").format(
                token=token, count=len(first.tokens)
            )
        )
    window.session.show(first)
    ended = asyncio.ensure_future(next_value(window.session.finished))
    await asyncio.sleep(0)  # it listens now
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
    """Without a seed it is the example's, or what every new window begins with: no picture draws its own."""
    seed = window.parts.toolbar.seed
    if picture.seed is not None:
        seed.spin.setValue(picture.seed)
    seed.lock_button.setChecked(True)


def _validate_settings(title: str, parameters: tuple[Parameter, ...], values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Settings that their editors can show. Raises AlbumProblem."""
    known = {parameter.name: parameter for parameter in parameters}
    for name, value in values.items():
        if name not in known:
            names = ", ".join(known) or "none"
            raise AlbumError(
                tr("{title} has no setting “{name}”.{near} It has: {names}.").format(
                    title=title, name=truncate_name(name), near=did_you_mean(name, known), names=names
                )
            )
        if reason := setting_values.invalid_reason(known[name], value):
            raise AlbumError(f"{title}: {reason}")
    return values
