"""A scripted user of the real window: one method for each feature that works without a network.

`tests/ui/offline_session.py` uses every feature once, and `tests/ui/soak_session.py` repeats them for an hour.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QCoreApplication, QEvent, QEventLoop, QTimer
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog

from decodescope import core
from decodescope.app import build_window
from decodescope.app.panels.export_dialog import TRACE
from decodescope.app.state.branching import TokenReplacement
from decodescope.app.views import VIEWS
from decodescope.app.widgets.widget_pictures import PictureOptions
from decodescope.app.window.main_window import MainWindow
from decodescope.app.window.window_parts import WindowParts
from decodescope.core.models.model_saving import save_gguf

WAIT_MS = 120_000
POLL_MS = 5
PROMPT = "Once upon a time, a fox"
MODELS = ("storyteller", "storyteller-draft")
DIALOGS = (
    "open_palette", "open_settings", "open_help", "open_glossary", "open_shortcuts", "about", "copy_code",
    "open_used_settings", "get_model", "connect_engine", "open_plugins", "choose_tour", "record_demo", "save_picture",
    "open_folder", "open_gguf", "open_run", "save_run", "open_preset", "save_preset", "add_adapter", "open_speed",
    "open_scale", "open_preference_lab", "open_likelihood", "open_setting_posterior",
)  # fmt: skip
"""Commands that open a dialog or a window of its own."""
COPIES = ("copy_text", "copy_coloured", "copy_picture", "copy_diagnostics")
SETTINGS: dict[str, dict[str, Any]] = {
    "sampling": {"temperature": 1.1, "top_p": 0.9, "repetition_penalty": 1.2, "no_repeat_ngram_size": 3},
    "beam_search": {"num_beams": 3},
    "beam_sampling": {"num_beams": 3},
    "diverse_beam_search": {"num_beams": 4, "num_beam_groups": 2},
    "constrained_beam_search": {"num_beams": 3, "force_words_ids": [[[7]]]},
}
"""Settings by strategy that differ from their defaults."""
WITH_DRAFTS = ("assisted", "token_tree")


def wait_for(signal: Any, start: Callable[[], object]) -> None:
    """Start something and process events until its signal arrives. Raises TimeoutError."""
    loop, timer = QEventLoop(), QTimer(singleShot=True)
    signal.connect(loop.quit)
    timer.timeout.connect(lambda: loop.exit(1))
    timer.start(WAIT_MS)
    start()
    is_late = loop.exec()
    signal.disconnect(loop.quit)
    if is_late:
        raise TimeoutError(f"{start} took longer than {WAIT_MS} ms")


def wait_until(condition: Callable[[], bool]) -> None:
    """Process events until a condition holds. Raises TimeoutError."""
    if condition():
        return
    loop, poll, timer = QEventLoop(), QTimer(interval=POLL_MS), QTimer(singleShot=True)
    poll.timeout.connect(lambda: loop.quit() if condition() else None)
    timer.timeout.connect(lambda: loop.exit(1))
    poll.start()
    timer.start(WAIT_MS)
    is_late = loop.exec()
    poll.stop()
    if is_late:
        raise TimeoutError(f"{condition} did not hold within {WAIT_MS} ms")


class ScriptedUser:
    """Uses a window whose settings, runs and exports lie in `folder`. Every method returns what was done."""

    def __init__(self, folder: Path) -> None:
        self.application = QApplication.instance() or QApplication([])
        self.folder = folder
        self.window: MainWindow = build_window(folder / "settings")
        self._model = core.load(MODELS[0])
        wait_for(self.window.session.modelReady, self.window.show)

    @property
    def parts(self) -> WindowParts:
        """The window's parts, which a change of the language replaces."""
        return self.window.parts

    def run(self, strategy: str, cache: str = "dynamic", tokens: int = 8, **settings: object) -> list[str]:
        """Run a strategy with a cache; combinations that the window refuses are left out."""
        drafts = MODELS[1:] if strategy in WITH_DRAFTS else ()
        self.parts.setup.prompt.set_prompt(PROMPT, is_chat=False)
        problems = self.parts.settings_controller.choose(strategy=strategy, cache=cache, drafts=drafts)
        problems += self.parts.settings_controller.set_values(
            {"max_new_tokens": tokens, **SETTINGS.get(strategy, {}), **settings}
        )
        if problems or self.parts.requests.problems:
            return [f"refused {strategy} with {cache}"]
        wait_for(self.window.session.finished, self.parts.runs.run)
        run = self.window.session.run
        assert run is not None
        assert run.outcome is not None
        return [f"run {strategy}" if run.outcome.kind == "completed" else f"{run.outcome.kind} {strategy} with {cache}"]

    def run_all(self, caches: Sequence[str]) -> Iterator[str]:
        """Run every strategy, with the caches in turn."""
        for number, strategy in enumerate(core.strategies.registry):
            yield from self.run(strategy, caches[number % len(caches)])

    def stop_a_run(self) -> list[str]:
        """Stop a long run after its first events."""
        self.parts.settings_controller.choose(strategy="sampling", cache="dynamic")
        self.parts.settings_controller.set_values({"max_new_tokens": 400})
        wait_for(self.window.session.eventsArrived, self.parts.runs.run)
        if self.window.session.busy:
            wait_for(self.window.session.finished, self.parts.runs.stop)
        return ["stop"]

    def look_at_the_run(self) -> Iterator[str]:
        """Show every view, move the cursor, select tokens, and branch."""
        run = self.window.session.run
        assert run is not None
        for view in VIEWS:
            self.parts.centre.show_view(view.name)
            for cursor in (0, run.length // 2, run.length):
                self.window.session.move_cursor(cursor)
                self.application.processEvents()
            yield f"view {view.name}"
        self.parts.centre.show_view("tokens")
        for position in (0, 1, None):
            self.window.session.select_token(position)
            self.application.processEvents()
        yield "select"

    def branch(self) -> list[str]:
        """Continue a run with another token."""
        self.run("greedy")
        wait_for(self.window.session.finished, lambda: self.parts.runs.branch(TokenReplacement(2, " dog")))
        return ["branch"]

    def score(self) -> list[str]:
        """Score the prompt."""
        self.parts.setup.prompt.set_prompt(PROMPT, is_chat=False)
        wait_for(self.window.session.finished, self.parts.scoring.score_prompt)
        return ["score"]

    def guess(self) -> list[str]:
        """Guess the first token of a run, then leave."""
        self.run("sampling")
        self.parts.guess.start()
        wait_until(lambda: not self.window.session.busy)
        if self.parts.guess.is_on:
            self.parts.guess.leave()
        return ["guess"]

    def chat(self) -> list[str]:
        """Send two messages and start a new conversation."""
        self.parts.settings_controller.choose(strategy="sampling", cache="dynamic")
        self.parts.settings_controller.set_values({"max_new_tokens": 6})
        for message in ("Hello", "And then?"):
            self.parts.setup.prompt.set_prompt(message, is_chat=True)
            wait_for(self.window.session.finished, self.parts.runs.run)
        self.parts.chat.new_chat()
        self.parts.setup.prompt.set_prompt(PROMPT, is_chat=False)
        return ["chat"]

    def export(self) -> Iterator[str]:
        """Write every export of the shown run."""
        for offer in self.parts.export.exports.offers():
            for kind in offer.formats:
                path = self.folder / f"{offer.name}.{kind}"
                if kind == TRACE:
                    self.parts.recorded_runs.save(str(path))
                else:
                    self.parts.export.save(offer.name, PictureOptions(offer.size), str(path))
                assert path.stat().st_size, path
                yield f"export {path.name}"

    def replay(self) -> list[str]:
        """Save the shown run and open the file."""
        path = self.folder / "saved.decodescope"
        self.parts.recorded_runs.save(str(path))
        self.parts.recorded_runs.open(str(path))
        assert self.window.session.run is not None
        return ["replay"]

    def search_history(self) -> list[str]:
        """Search the kept runs and delete all of them."""
        self.parts.history_panel.show()
        view = self.parts.history_panel.ensure_view()
        for text in ("fox", ""):
            view.search.setText(text)
            self.application.processEvents()
        self.parts.history_panel.close()
        self.parts.history_edits.delete_all()
        return ["history"]

    def open_dialogs(self) -> Iterator[str]:
        """Open every dialog and close it."""
        for name in (*DIALOGS, *COPIES):
            self.parts.actions.do(name)
            self.application.processEvents()
            self._close_dialogs()
            yield f"command {name}"

    def _close_dialogs(self) -> None:
        for dialog in self.window.findChildren(QDialog):
            dialog.reject()
            if isinstance(dialog, QFileDialog):
                dialog.deleteLater()
        for other in self.application.topLevelWidgets():
            if other is not self.window and other.isVisible():
                other.close()

    def change_appearance(self) -> list[str]:
        """Change theme, size of the text, level of explanation and language, and present."""
        for theme in ("dark", "light"):
            self.parts.appearance.set_theme(theme)
        for command in ("enlarge_text", "reset_text", "plain_words", "exact_words", "usual_words"):
            self.parts.actions.do(command)
        for command in ("present", "present"):
            self.parts.actions.do(command)
            self.application.processEvents()
        for command, title in (("speak_chinese", "zh_CN"), ("speak_english", "en")):
            before = self.parts
            self.parts.actions.do(command)
            wait_until(lambda before=before: self.parts is not before)
            assert self.parts.services.language_switch.choice == title
        return ["appearance"]

    def switch_models(self) -> list[str]:
        """Run both bundled models, and one of them from a GGUF file."""
        path = self.folder / "tale.gguf"
        if not path.exists():
            save_gguf(self._model, path, "Q8_0")
        self.parts.folders.use(str(path))
        done = []
        for model in (str(path), MODELS[1], MODELS[0]):
            self.parts.settings_controller.choose(model=model)
            done += [f"{what} of {Path(model).name}" for what in self.run("greedy")]
        return done

    def use_plugins(self) -> list[str]:
        """Write a processor, run it, and switch it off and on."""
        jobs = self.parts.services.plugins
        if not jobs.is_loaded:
            wait_for(jobs.changed, lambda: jobs.create("processor"))
        wait_until(lambda: not jobs.is_loading)
        (plugin,) = (plugin for plugin in jobs.plugins if plugin.path is not None)
        for is_on in (False, True):
            jobs.switch(plugin, is_on)
            wait_until(lambda: not jobs.is_loading)
        done = self.run("sampling", my_processor=True, my_processor_letters=3)
        return [f"plug-in: {what}" for what in done]

    def receive_live_run(self) -> list[str]:
        """Capture `generate` of a script and show its run while it happens."""
        assert self.parts.services.live.listen()
        network, tokenizer = self._model.model, self._model.tokenizer
        inputs = tokenizer(PROMPT, return_tensors="pt")
        with core.capture(network, tokenizer, live=True) as captured:
            network.generate(**inputs, max_new_tokens=6, do_sample=False)
        assert captured.is_live
        wait_for(self.window.session.finished, lambda: None)
        return ["live run", f"captured {len(captured.runs)}"]

    def use_the_core(self) -> list[str]:
        """Record a run from a script, and everything else that the public functions compute."""
        request = core.Request(PROMPT, {"max_new_tokens": 4})
        list(core.record(self.folder / "script.decodescope", core.stream(self._model, request), request))
        list(core.replay(self.folder / "script.decodescope"))
        core.score(self._model, PROMPT)
        core.estimate(self._model, request)
        core.as_code(request)
        return ["script"]

    def settle(self) -> None:
        """Close dialogs, wait for running tasks, and process deferred deletions."""
        self._close_dialogs()
        wait_until(lambda: self.window.session.state == "idle")
        for _ in range(3):
            QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            self.application.processEvents()
            gc.collect()

    def close(self) -> None:
        """Close the window."""
        self.window.close()
        self.window.deleteLater()
        self.settle_events()

    def settle_events(self) -> None:
        """Process what is left."""
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        self.application.processEvents()
