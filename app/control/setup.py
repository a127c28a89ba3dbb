"""The setup's controller: everything that can be set, kept in step, and turned into the request of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.control.model_list import FOLDER_ITEM, ModelList, subtitle
from app.panels.setup import SetupPanel
from app.panels.toolbar import Toolbar
from app.session.session import Session
from app.state import conversation, values
from app.state.requests import LoadRequest, ModelInfo, Prompt, RunRequest
from app.storage.examples import Example
from app.storage.presets import Preset
from app.storage.settings import Settings
from app.widgets.picker_combo import PickerItem
from core import caches, strategies

LOAD_DELAY_MS = 250
"""Walking through the list of models with the keyboard must not load every one of them."""


class SetupController(QObject):
    """Connects the pickers, the panels and the settings with each other and with the session."""

    folderWanted = Signal()
    notice = Signal(str)

    def __init__(self, toolbar: Toolbar, setup: SetupPanel, settings: Settings, session: Session) -> None:
        super().__init__(toolbar)
        self._toolbar, self._setup, self._settings, self._session = toolbar, setup, settings, session
        self._models = ModelList()
        self._info: ModelInfo | None = None
        self.chat = conversation.Conversation()
        """The turns so far; the prompt's editor holds the next message."""
        self._preset_extra: Mapping[str, Any] = {}
        self._is_warm = False
        self._load_timer = QTimer(self, singleShot=True, interval=LOAD_DELAY_MS)
        self._load_timer.timeout.connect(self.load)
        self._fill()
        self._restore()
        self._connect()
        self._show_strategy()
        self._show_cache()

    @property
    def model(self) -> str:
        """The chosen model's name; empty when there is none."""
        name = self._toolbar.model.currentData()
        return "" if name in (None, FOLDER_ITEM) else name

    @property
    def strategy(self) -> str:
        """The chosen strategy's name."""
        return str(self._toolbar.strategy.currentData())

    @property
    def drafters(self) -> tuple[str, ...]:
        """The draft models of a strategy that has some; empty for any other."""
        return self._toolbar.draft.chosen if self._takes_drafters else ()

    @property
    def _takes_drafters(self) -> bool:
        return strategies.registry[self.strategy].takes_drafters

    @property
    def problems(self) -> list[str]:
        """Why no run can start as things are set, a sentence each."""
        found = [*self._setup.parameters.problems(), *self._setup.cache_parameters.problems()]
        if not self.model:
            found.insert(0, "No model is chosen.")
        elif self._takes_drafters and not self.drafters:
            found.append("No draft model is chosen: this strategy needs a smaller one with the same tokenizer.")
        if self._setup.prompt.is_chat and not self._prompt():
            found.append("There is no message yet.")
        return found

    def request(self, seed: int | None = None) -> RunRequest:
        """The run as everything is set now; an unlocked seed is drawn unless one is given."""
        return RunRequest(
            model=self.model,
            prompt=self._prompt(),
            strategy=self.strategy,
            params=self._setup.parameters.values(),
            drafters=self.drafters,
            cache=str(self._toolbar.cache.currentData()),
            cache_params=self._setup.cache_parameters.values(),
            seed=self._toolbar.seed.next_seed() if seed is None else seed,
            top_n=self._settings.compute.top_n,
            prefix_budget=self._settings.compute.prefix_budget,
            memory_fallback=self._settings.compute.memory_fallback,
            when_full=self.chat.when_full,
            load=self.load_request(),
        )

    def _prompt(self) -> Prompt:
        """The text; or the turns so far and what the editor adds to them (the worker leaves out what has no place)."""
        written = self._setup.prompt.prompt
        return written if isinstance(written, str) else self.chat.with_turns(written)

    def load_request(self) -> LoadRequest:
        """How the chosen model is to be loaded."""
        compute, models = self._settings.compute, self._settings.models
        return LoadRequest(
            self.model,
            compute.device,
            compute.dtype,
            compute.threads,
            allow_pickle=self.model in models.allow_pickle,
            allow_remote_code=self.model in models.allow_remote_code,
        )

    @Slot()
    def warm_up(self) -> None:
        """From now on hold the chosen model ready; called once the window is on the screen."""
        self._is_warm = True
        self.load()

    @Slot()
    def load(self) -> None:
        """Load the chosen model ahead of its first run, if it surely fits."""
        if self._is_warm and self.model and (self._models.fits(self.model) or self._is_allowed()):
            self._session.load_model(self.load_request())

    def allow(self, key: str) -> None:
        """Give the chosen model a permission (`allow_pickle`, `allow_remote_code`) and keep it."""
        allowed = getattr(self._settings.models, key)
        if self.model and self.model not in allowed:
            allowed.append(self.model)

    def add_folder(self, folder: str) -> bool:
        """List a model folder and choose it; False when it holds no model."""
        entry = self._models.add_folder(folder)
        if entry is None:
            return False
        if folder not in self._settings.models.folders:
            self._settings.models.folders.append(folder)
        self._show_models()
        return self._toolbar.model.choose(entry.name)

    def choose(self, model: str = "", strategy: str = "", cache: str = "", drafts: Sequence[str] = ()) -> list[str]:
        """Choose by name; gives back a sentence for each name that is unknown."""
        problems = []
        if model and not self._toolbar.model.choose(model) and not self.add_folder(model):
            problems.append(f"There is no model “{model}” here. There are: {', '.join(self._models.names)}.")
        if strategy:
            problems += _choose(self._toolbar.strategy, strategies.registry, strategy, "strategy")
        if cache:
            problems += _choose(self._toolbar.cache, caches.registry, cache, "cache")
        return problems + self._choose_drafts(drafts)

    def _choose_drafts(self, names: Sequence[str]) -> list[str]:
        """Choose draft models by name or folder; a sentence for each that cannot draft."""
        picker, problems = self._toolbar.draft, []
        new = [name for name in names if picker.why_not(name) is None and self._models.add_folder(name) is not None]
        if new:
            picker.offer(self._models.drafts_for(self.model))
        for name in picker.choose_all(names) if names else ():
            reason = picker.why_not(name)
            if reason is None:
                problems.append(f"There is no draft model “{name}” here.")
            else:
                problems.append(
                    f"“{name}” cannot draft for {self.model}. {reason or 'There are enough drafts already.'}"
                )
        return problems

    def reckon_models(self, tokens: int, rows: int) -> None:
        """Say of each listed model what a run of that size would take."""
        if self._models.reckon(tokens, rows):
            self._show_models()

    def set_values(self, new: Mapping[str, Any]) -> list[str]:
        """Settings of the strategy; gives back the names it has not."""
        return self._setup.parameters.set_values(new)

    def set_more_values(self, new: Mapping[str, Any]) -> None:
        """Settings on top of those that are changed already."""
        panel = self._setup.parameters
        panel.set_values({**panel.changed_values(), **new})

    @Slot(object)
    def apply_example(self, example: Example) -> None:
        """Prompt, model, strategy and settings of an example."""
        problems = self.choose(example.model, example.strategy, drafts=example.drafters)
        if example.strategy or example.params:
            self.set_values(example.params)
        if example.seed is not None:
            self._toolbar.seed.spin.setValue(example.seed)
        self._setup.prompt.set_prompt(example.text, example.is_chat)
        self._setup.set_summary(example.about or self._summary())
        if problems:
            self.notice.emit(" ".join(problems))

    def apply_preset(self, preset: Preset) -> None:
        """Strategy and settings of a preset; what has no editor is kept for the next save."""
        problems = self.choose(strategy=preset.strategy, drafts=preset.drafters)
        self.set_values(preset.values)
        self._preset_extra = preset.extra
        if told := " ".join([*problems, *([preset.notice] if preset.notice else [])]):
            self.notice.emit(told)

    def as_preset(self, name: str) -> Preset:
        """The settings as they are now, under a name."""
        values = self._setup.parameters.values()
        return Preset(name, self.strategy, values, self._preset_extra, drafters=self.drafters)

    @Slot()
    def focus_prompt(self) -> None:
        """Put the cursor into the prompt."""
        if self._setup.isHidden():
            self._setup.show()
        self._setup.prompt.editor.setFocus()

    def remember(self) -> None:
        """Write everything that is set into the settings."""
        choices = self._settings.choices
        choices.model, choices.strategy = self.model, self.strategy
        choices.cache = str(self._toolbar.cache.currentData())
        choices.drafts = list(self._toolbar.draft.chosen)
        choices.prompt, choices.chat = self._setup.prompt.editor.toPlainText(), self._setup.prompt.is_chat
        choices.seed, choices.seed_locked = self._toolbar.seed.spin.value(), self._toolbar.seed.is_locked
        choices.values[self.strategy] = self._setup.parameters.changed_values()
        choices.cache_values[choices.cache] = self._setup.cache_parameters.changed_values()

    def stop(self) -> None:
        """Let no timer fire any more."""
        self._load_timer.stop()

    @Slot(str)
    def on_loading(self, _name: str) -> None:
        """The worker has begun to load the model."""
        self._info = None
        self._show_model_words(loading=True)

    @Slot(object)
    def on_ready(self, info: ModelInfo) -> None:
        """A model is loaded: its refusals, its own defaults, its chat template."""
        self._info = info
        self._show_model_words()
        if info.name == self.model:
            self._show_strategies(info.refused_strategies)
            self._show_caches(info.refused_caches)
            self._setup.parameters.set_model_defaults(info.defaults)
            reason = "" if info.has_chat else f"{info.title or info.name} has no chat template."
            self._setup.prompt.set_chat_available(reason)

    @Slot(object)
    def on_failed(self, _error: object) -> None:
        """Loading may have failed: stop saying that it goes on."""
        self._show_model_words()

    def _fill(self) -> None:
        self._models.refresh(self._settings.models.folders)
        self._show_models()
        self._show_strategies({})
        self._show_caches({})

    def _restore(self) -> None:
        choices = self._settings.choices
        self._toolbar.model.choose(choices.model)
        self._toolbar.strategy.choose(choices.strategy)
        self._toolbar.cache.choose(choices.cache)
        self._show_drafts()
        self._toolbar.draft.choose_all(choices.drafts)
        self._toolbar.seed.spin.setValue(choices.seed)
        self._toolbar.seed.lock.setChecked(choices.seed_locked)
        self._setup.prompt.set_prompt(choices.prompt, choices.chat)

    def _connect(self) -> None:
        self._toolbar.model.currentIndexChanged.connect(self._on_model)
        self._toolbar.model.activated.connect(self._on_model_activated)
        self._toolbar.strategy.currentIndexChanged.connect(self._on_strategy)
        self._toolbar.cache.currentIndexChanged.connect(self._on_cache)
        self._setup.parameters.changed.connect(self._show_words)
        self._setup.prompt.exampleChosen.connect(self.apply_example)

    def _show_models(self) -> None:
        self._toolbar.model.set_items(self._models.items())
        self._last_model = self._toolbar.model.currentIndex()
        self._show_model_words()

    def _show_strategies(self, refused: Mapping[str, str]) -> None:
        self._toolbar.strategy.set_items(
            PickerItem(entry.title, name, entry.summary, refused.get(name, ""), entry.paper or entry.summary)
            for name, entry in strategies.registry.items()
        )

    def _show_drafts(self) -> None:
        """Offer the drafts that fit the model; shown only where the strategy has a use for one."""
        self._toolbar.draft.offer(self._models.drafts_for(self.model))
        self._toolbar.draft.setVisible(self._takes_drafters)

    def _show_caches(self, refused: Mapping[str, str]) -> None:
        self._toolbar.cache.set_items(
            PickerItem(entry.title, name, entry.summary, refused.get(name, ""), entry.paper or entry.summary)
            for name, entry in caches.registry.items()
        )

    def _show_strategy(self) -> None:
        """Draw the chosen strategy's parameters, with the values it was left with."""
        strategy = strategies.registry[self.strategy]
        panel = self._setup.parameters
        panel.show_parameters(strategy.parameters)
        kept = self._settings.choices.values.get(strategy.name)
        if kept:
            panel.set_values({**panel.changed_values(), **kept})
        self._settings.choices.values.pop(strategy.name, None)
        self._toolbar.draft.setVisible(self._takes_drafters)
        self._setup.set_summary(strategy.summary)
        self._show_words()

    def _show_cache(self) -> None:
        name = self._toolbar.cache.currentData()
        if name is not None:
            self._setup.cache_parameters.show_parameters(caches.registry[name].parameters)
            self._setup.cache_parameters.set_values(self._settings.choices.cache_values.get(name, {}))

    @Slot()
    def _show_words(self) -> None:
        """The strategy's second line: what is changed, or what it does."""
        strategy = strategies.registry[self.strategy]
        changed = self._setup.parameters.changed_values()
        words = values.summary(strategy.parameters, changed)
        self._toolbar.strategy.set_subtitle(words or "default settings")

    def _show_model_words(self, loading: bool = False) -> None:
        info = self._info if self._info is not None and self._info.name == self.model else None
        words = subtitle(self._models.get(self.model), info, loading)
        self._toolbar.model.set_subtitle(words if self.model else "choose a model")

    def _summary(self) -> str:
        return strategies.registry[self.strategy].summary

    def _is_allowed(self) -> bool:
        models = self._settings.models
        return self.model in models.allow_pickle or self.model in models.allow_remote_code

    @Slot()
    def _on_model(self) -> None:
        if self.model:
            self._last_model = self._toolbar.model.currentIndex()
            self._show_model_words()
            self._show_drafts()
            self._load_timer.start()

    @Slot(int)
    def _on_model_activated(self, index: int) -> None:
        if self._toolbar.model.itemData(index) == FOLDER_ITEM:
            self._toolbar.model.setCurrentIndex(self._last_model)
            self.folderWanted.emit()

    @Slot()
    def _on_strategy(self) -> None:
        self._preset_extra = {}
        self._show_strategy()

    @Slot()
    def _on_cache(self) -> None:
        self._show_cache()


def _choose(picker: Any, registry: Mapping[str, Any], name: str, kind: str) -> list[str]:
    try:
        picker.choose(registry[name].name)
    except KeyError:
        return [f"There is no {kind} “{name}”. There are: {', '.join(registry)}."]
    return []
