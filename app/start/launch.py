"""Apply a command line to the window: show it, or write a picture of it."""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtWidgets import QApplication

from decodescope.app.start.application import Application
from decodescope.app.start.cli import CommandLineOptions
from decodescope.app.start.cli.values import PICTURE_SIZE
from decodescope.app.start.output_files import (
    PictureError,
    export,
    hide_transient_state,
    record_demo,
    save_window_picture,
)
from decodescope.app.start.window_waiting import (
    LaunchProblem,
    next_value,
    play_tour_to_end,
    redraw_from_scratch,
    run_to_end,
    wait_until_loaded,
    wait_until_painted,
    wait_until_settled,
)
from decodescope.app.state import setting_values as typed
from decodescope.app.state.suggestions import truncate_name, unknown_name_message
from decodescope.app.views import VIEWS
from decodescope.app.window.main_window import MainWindow
from decodescope.core import adapters, strategies
from decodescope.core.checks.name_suggestions import did_you_mean, known_names_sentence
from decodescope.core.errors import DecodescopeError
from decodescope.resources.language import join_sentences, tr

__all__ = ["LaunchProblem", "apply_options", "show_recorded", "start"]


async def start(window: MainWindow, options: CommandLineOptions) -> int:
    """Fill the window and wait until it is closed, or write the requested files and return. Returns the exit code."""
    if window.is_closed:  # closed by the user while it was still empty
        return 0
    window.assemble()
    if not options.writes_files:
        return await _run_interactively(window, options)
    window.parts.store.is_read_only = True
    try:
        return await _write_files(window, options)
    finally:
        window.close()


async def _run_interactively(window: MainWindow, options: CommandLineOptions) -> int:
    problem = ""
    window.parts.services.kernel_builder.allow_building()
    if options.recorded is None and not options.tour:  # neither needs plug-ins: foreign code does not run
        window.firstPainted.connect(window.parts.services.plugins.load)
    window.firstPainted.connect(window.parts.updates.check_if_due)
    window.parts.services.live.listen()
    try:
        apply_options(window, options)
    except LaunchProblem as error:
        problem = str(error)
    window.show()
    application = QApplication.instance()
    if isinstance(application, Application):
        application.opened_files.open_with(window.parts.recorded_runs.open)
    try:
        show_recorded(window, options)
    except LaunchProblem as error:
        problem = problem or str(error)
    if problem:
        window.parts.messages.show_notice(problem, tr("Some command-line options could not be applied"))
    elif options.tour:
        from decodescope.app.features.tours.state import find_tour

        window.parts.tours.player.play(find_tour(options.tour), auto_advance=True)
    elif options.run:
        window.parts.runs.run()
    elif not options.sets_more_than_appearance:
        window.parts.welcome.show_once()
    if options.present:
        window.parts.presentation.enter()
    await next_value(window.closed)
    return 0


async def _write_files(window: MainWindow, options: CommandLineOptions) -> int:
    try:
        apply_options(window, options)
        if options.size is None:
            window.resize(*PICTURE_SIZE)
        window.show()
        await wait_until_painted(window)
        await _prepare_content(window, options)
        if options.present:
            window.parts.presentation.enter()
            await wait_until_painted(window)
        await wait_until_settled(window)
        if options.still:
            await redraw_from_scratch(window)
            hide_transient_state(window)
            await wait_until_painted(window)
        if options.screenshot is not None:
            save_window_picture(window, options.screenshot)
        if options.export is not None:
            export(window, options.export, guard_formulas=not options.plain_csv)
        if options.record_demo is not None:
            record_demo(window, options.record_demo, options.demo_speed, options.size)
    except (LaunchProblem, PictureError) as error:
        print(f"decodescope: {error}", file=sys.stderr)
        return 1
    return 0


async def _prepare_content(window: MainWindow, options: CommandLineOptions) -> None:
    """Wait until the content of the picture is ready. Raises LaunchProblem."""
    if options.tour:
        await play_tour_to_end(window, options.tour)
    elif options.run:
        await run_to_end(window)
    elif options.recorded is None:
        await wait_until_loaded(window)
    else:
        show_recorded(window, options)
        await wait_until_painted(window)


def apply_options(window: MainWindow, options: CommandLineOptions) -> None:
    """Apply all command-line options to the window. Raises LaunchProblem."""
    if options.recorded is not None:
        window.parts.loading.pause()
        window.parts.memory_fit.pause()
    problems = window.parts.settings_controller.choose(options.model, options.strategy, options.cache, options.drafts)
    if problems:
        raise LaunchProblem(" ".join(problems))
    if options.preset:
        _apply_preset(window, options.preset)
        window.parts.settings_controller.choose(
            strategy=options.strategy
        )  # a strategy named on the command line overrides the preset's
    for adapter in options.adapters:
        if problem := adapters.adapter_problem(adapter.path):
            raise LaunchProblem(" ".join(problem))
        window.parts.adapters.add(adapter.path, adapter.strength)
    if options.weights:
        window.parts.weights.choose(options.weights)
    if options.memory is not None:
        window.parts.weights.set_memory_limit(options.memory)
    window.parts.settings_controller.update_values(_parse_parameters(window.parts.chosen.strategy.name, options.params))
    if options.prompt is not None:
        window.parts.setup.prompt.set_prompt(options.prompt, options.chat)
    if options.media:
        _attach_media(window, options)
    if options.seed is not None:
        window.parts.toolbar.seed.spin.setValue(options.seed)
        window.parts.toolbar.seed.lock_button.setChecked(True)
    if options.view and not window.parts.centre.show_view(options.view):
        raise LaunchProblem(
            unknown_name_message("view", options.view, (view.name for view in VIEWS if not view.hidden_when_empty))
        )
    _apply_appearance(window, options)


def _attach_media(window: MainWindow, options: CommandLineOptions) -> None:
    """Attach the sounds and pictures. Raises LaunchProblem for a file that cannot be read or that the model does not
    support.
    """
    from decodescope.app.features.media.session.media_reading import read_medium

    media = window.parts.media
    for medium in (read_medium(str(path)) for path in options.media):
        problem = medium.error
        message = (
            join_sentences(problem.cause, problem.remedy) if problem is not None else media.unsupported_reason(medium)
        )
        if message:
            raise LaunchProblem(message)
    media.set_paths([str(path.absolute()) for path in options.media])
    if options.prompt is None:  # the saved prompt was not written for these media
        window.parts.setup.prompt.set_prompt("", options.chat)


def _apply_preset(window: MainWindow, name_or_path: str) -> None:
    """Apply all settings of a preset or of a settings file. Raises LaunchProblem."""
    from decodescope.app.storage import presets

    known = window.parts.presets.preset_files()
    if name_or_path not in known and (name := presets.FORMER_NAMES.get(name_or_path)) in known:
        name_or_path = str(name)
    if name_or_path not in known and not Path(name_or_path).exists():
        raise LaunchProblem(unknown_name_message("preset", name_or_path, known))
    try:
        preset = presets.load_preset(known.get(name_or_path) or Path(name_or_path))
    except presets.PresetProblem as error:
        raise LaunchProblem(join_sentences(error.cause, error.remedy)) from None
    if preset.rejected:
        raise LaunchProblem(
            tr("“{name}” has invalid values: {reasons}").format(name=name_or_path, reasons=" ".join(preset.rejected))
        )
    window.parts.settings_controller.apply_preset(preset)


def show_recorded(window: MainWindow, options: CommandLineOptions) -> None:
    """Show the recorded run given on the command line, if any, and apply its request to the settings. Raises
    LaunchProblem.
    """
    if options.recorded is None:
        return
    parts = window.parts
    try:
        run = parts.recorded_runs.show(options.recorded, options.still, offer_settings=False)
    except DecodescopeError as error:
        raise LaunchProblem(join_sentences(error.cause, error.remedy)) from None
    parts.status.show_state(tr("No model loaded"))
    if run is not None:
        parts.settings_controller.apply_request(run.request)


def _apply_appearance(window: MainWindow, options: CommandLineOptions) -> None:
    look = window.parts.settings.appearance
    look.theme = options.theme or look.theme
    window.parts.appearance.set_font_scale(options.font_scale or look.font_scale)
    if options.size is not None:
        min_size = window.minimumSize()
        if options.size[0] < min_size.width() or options.size[1] < min_size.height():
            raise LaunchProblem(
                tr("The window must be at least {width}x{height} pixels.").format(
                    width=min_size.width(), height=min_size.height()
                )
            )
        window.resize(*options.size)


def _parse_parameters(strategy_name: str, pairs: tuple[tuple[str, str], ...]) -> dict[str, object]:
    strategy = strategies.registry[strategy_name]
    values: dict[str, object] = {}
    for name, text in pairs:
        if name not in strategy.parameter_names:
            raise LaunchProblem(
                tr("{title} has no setting “{name}”.{near} {names}").format(
                    title=tr(strategy.title),
                    name=truncate_name(name),
                    near=did_you_mean(name, strategy.parameter_names),
                    names=known_names_sentence(name, strategy.parameter_names),
                )
            )
        try:
            values[name] = typed.parse(strategy.parameter(name), text)
        except typed.InvalidValueError as problem:
            raise LaunchProblem(tr("--param {name}: {problem}").format(name=name, problem=problem)) from None
    return values
