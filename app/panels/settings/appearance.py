"""How the window looks, and in which words it speaks."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot

from app.panels.choice_titles import language_titles, scheme_titles
from app.panels.settings.fields import SettingsForm, make_combo_box, make_spin_box, selected_value
from app.storage.settings import MAX_SCALE, MIN_SCALE, AppearanceSection
from resources.depth import DEPTHS
from resources.language import mark, tr

DEPTH_TITLES = (mark("Plain"), mark("Usual"), mark("Exact"))
_DEPTH_HELP = mark("How explanations are worded: without a technical word, in the field's words, or with every figure.")


class AppearanceSettings(SettingsForm):
    """Language, theme, size and depth of the words."""

    languageChosen = Signal(str)

    def __init__(self, settings: AppearanceSection) -> None:
        super().__init__()
        self._settings = settings
        self.language = make_combo_box("languageChoice", tr("Language"), language_titles(), settings.language)
        self.language.activated.connect(self._on_language)
        self.theme = make_combo_box("themeChoice", tr("Theme"), scheme_titles(), settings.theme)
        self.theme.currentIndexChanged.connect(self._on_theme)
        percent, least, most = (round(scale * 100) for scale in (settings.font_scale, MIN_SCALE, MAX_SCALE))
        self.scale = make_spin_box("scaleChoice", tr("Text size"), percent, least, most)
        self.scale.setSingleStep(10)
        self.scale.setSuffix(" %")
        self.scale.valueChanged.connect(self._on_scale)
        self.wording = make_combo_box(
            "depthChoice", tr("Words"), tuple(zip(DEPTHS, DEPTH_TITLES, strict=True)), settings.depth
        )
        self.wording.setToolTip(tr(_DEPTH_HELP))
        self.wording.currentIndexChanged.connect(self._on_depth)
        self.add(tr("Language"), self.language)
        self.add(tr("Theme"), self.theme)
        self.add(tr("Text size"), self.scale)
        self.add(tr("Words"), self.wording)

    @Slot()
    def _on_theme(self) -> None:
        self._settings.theme = selected_value(self.theme)
        self.changed.emit("appearance")

    @Slot()
    def _on_depth(self) -> None:
        self._settings.depth = selected_value(self.wording)
        self.changed.emit("appearance")

    @Slot()
    def _on_language(self) -> None:
        self.languageChosen.emit(selected_value(self.language))

    @Slot(int)
    def _on_scale(self, percent: int) -> None:
        self._settings.font_scale = percent / 100
        self.changed.emit("appearance")
