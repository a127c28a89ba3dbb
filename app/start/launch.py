"""From a command line to a window that is shown, or to a picture of it."""

from __future__ import annotations

import sys
from pathlib import Path

from app.start.cli import CommandLineOptions
from app.start.cli.values import PICTURE_SIZE
from app.start.output_files import PictureError, export, hold_still, record_demo, save_picture
from app.start.window_waiting import (
    LaunchProblem,
    draw_anew,
    loaded,
    next_value,
    painted,
    run_to_the_end,
    settled,
    toured,
)
from app.state import setting_values as typed
from app.state.suggestions import short, unknown
from app.views import VIEWS
from app.window.main_window import MainWindow
from core import strategies
from core.errors import DecodescopeError
from core.suggestions import near
from resources.language import sentences, tr

__all__ = ["LaunchProblem", "apply", "show_recorded", "start"]


async def start(window: MainWindow, options: CommandLineOptions) -> int:
    """Furnish the window and stay until it is closed, or leave a picture and go. Gives back the exit code."""
    if window.is_closed:  # by a quick hand, while it was still empty
        return 0
    window.assemble()
    if not options.leaves:
        return await _stay(window, options)
    window.parts.store.is_read_only = True
    try:
        return await _leave_files(window, options)
    finally:
        window.close()


async def _stay(window: MainWindow, options: CommandLineOptions) -> int:
    problem = ""
    window.parts.lasting.quickening.allow()
    try:
        apply(window, options)
    except LaunchProblem as error:
        problem = str(error)
    window.show()
    try:
        show_recorded(window, options)
    except LaunchProblem as error:
        problem = problem or str(error)
    if problem:
        window.parts.messages.show_notice(problem, tr("The command line could not be followed in full"))
    elif options.tour:
        from app.state.tours import find

        window.parts.tours.player.play(find(options.tour), by_itself=True)
    elif options.run:
        window.parts.runs.run()
    elif not options.says_what_to_do:
        window.parts.welcome.greet()
    if options.present:
        window.parts.stage.enter()
    await next_value(window.closed)
    return 0


async def _leave_files(window: MainWindow, options: CommandLineOptions) -> int:
    try:
        apply(window, options)
        if options.size is None:
            window.resize(*PICTURE_SIZE)
        window.show()
        await painted(window)
        await _ready(window, options)
        if options.present:
            window.parts.stage.enter()
            await painted(window)
        await settled(window)
        if options.still:
            await draw_anew(window)
            hold_still(window)
            await painted(window)
        if options.screenshot is not None:
            save_picture(window, options.screenshot)
        if options.export is not None:
            export(window, options.export, guard_formulas=not options.plain_csv)
        if options.record_demo is not None:
            record_demo(window, options.record_demo, options.demo_speed, options.size)
    except (LaunchProblem, PictureError) as error:
        print(f"decodescope: {error}", file=sys.stderr)
        return 1
    return 0


async def _ready(window: MainWindow, options: CommandLineOptions) -> None:
    """Wait until there is what the picture is to show. Raises LaunchProblem."""
    if options.tour:
        await toured(window, options.tour)
    elif options.run:
        await run_to_the_end(window)
    elif options.recorded is None:
        await loaded(window)
    else:
        show_recorded(window, options)
        await painted(window)


def apply(window: MainWindow, options: CommandLineOptions) -> None:
    """Set everything the command line says. Raises LaunchProblem."""
    if options.recorded is not None:
        window.parts.loading.rest()
        window.parts.fit.rest()
    problems = window.parts.controller.choose(options.model, options.strategy, options.cache, options.drafts)
    if problems:
        raise LaunchProblem(" ".join(problems))
    if options.preset:
        _use_preset(window, options.preset)
        window.parts.controller.choose(strategy=options.strategy)  # what is named goes before what a file says
    if options.weights:
        window.parts.weights.choose(options.weights)
    if options.memory is not None:
        window.parts.weights.limit(options.memory)
    window.parts.controller.set_more_values(_values(window.parts.chosen.strategy.name, options.params))
    if options.prompt is not None:
        window.parts.setup.prompt.set_prompt(options.prompt, options.chat)
    if options.media:
        _give(window, options)
    if options.seed is not None:
        window.parts.toolbar.seed.spin.setValue(options.seed)
        window.parts.toolbar.seed.lock.setChecked(True)
    if options.view and not window.parts.centre.show_view(options.view):
        raise LaunchProblem(unknown("view", options.view, (view.name for view in VIEWS if not view.comes_later)))
    _apply_appearance(window, options)


def _give(window: MainWindow, options: CommandLineOptions) -> None:
    """The sounds and pictures. Raises LaunchProblem for one that cannot be read, or that the model does not take."""
    from app.session.media_reading import read

    media = window.parts.media
    for medium in (read(str(path)) for path in options.media):
        problem = medium.trouble
        told = sentences(problem.cause, problem.remedy) if problem is not None else media.why_not(medium)
        if told:
            raise LaunchProblem(told)
    media.put([str(path.absolute()) for path in options.media])
    if options.prompt is None:  # what stood there was written for something else
        window.parts.setup.prompt.set_prompt("", options.chat)


def _use_preset(window: MainWindow, named: str) -> None:
    """Take the settings of a preset, or of a file, all of them. Raises LaunchProblem."""
    from app.storage import presets

    known = window.parts.library.preset_files()
    if named not in known and not Path(named).exists():
        raise LaunchProblem(unknown("preset", named, known))
    try:
        preset = presets.load(known.get(named) or Path(named))
    except presets.PresetProblem as error:
        raise LaunchProblem(sentences(error.cause, error.remedy)) from None
    if preset.refused:
        raise LaunchProblem(
            tr("“{name}” has values that cannot be used: {reasons}").format(
                name=named, reasons=" ".join(preset.refused)
            )
        )
    window.parts.controller.apply_preset(preset)


def show_recorded(window: MainWindow, options: CommandLineOptions) -> None:
    """Show the recorded run that is named, if one is, and what it was set to. Raises LaunchProblem."""
    if options.recorded is None:
        return
    parts = window.parts
    try:
        run = parts.recorded.show(options.recorded, options.still, offers=False)
    except DecodescopeError as error:
        raise LaunchProblem(sentences(error.cause, error.remedy)) from None
    parts.status.show_state(tr("No model loaded"))
    if run is not None:
        parts.controller.apply_request(run.request)


def _apply_appearance(window: MainWindow, options: CommandLineOptions) -> None:
    look = window.parts.settings.appearance
    look.theme = options.theme or look.theme
    window.parts.appearance.set_font_scale(options.font_scale or look.font_scale)
    if options.size is not None:
        least = window.minimumSize()
        if options.size[0] < least.width() or options.size[1] < least.height():
            raise LaunchProblem(
                tr("The window is at least {width}x{height} pixels large.").format(
                    width=least.width(), height=least.height()
                )
            )
        window.resize(*options.size)


def _values(strategy_name: str, pairs: tuple[tuple[str, str], ...]) -> dict[str, object]:
    strategy = strategies.registry[strategy_name]
    found: dict[str, object] = {}
    for name, text in pairs:
        if name not in strategy.parameter_names:
            raise LaunchProblem(
                tr("{title} has no setting “{name}”.{near} It has: {names}.").format(
                    title=tr(strategy.title),
                    name=short(name),
                    near=near(name, strategy.parameter_names),
                    names=", ".join(strategy.parameter_names),
                )
            )
        try:
            found[name] = typed.parse(strategy.parameter(name), text)
        except typed.ValueProblem as problem:
            raise LaunchProblem(tr("--param {name}: {problem}").format(name=name, problem=problem)) from None
    return found
