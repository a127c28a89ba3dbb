"""How the window looks, and in which words it speaks."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot

from app.panels.choice_titles import language_titles, scheme_titles
from app.panels.settings.fields import SettingsForm, chosen, combo, spin
from app.storage.settings import LARGEST_SCALE, SMALLEST_SCALE, Appearance
from resources.depth import DEPTHS
from resources.language import mark, tr

DEPTH_TITLES = (mark("Plain"), mark("Usual"), mark("Exact"))
_WORDS = mark("How explanations are worded: without a technical word, in the field's words, or with every figure.")


class AppearanceSettings(SettingsForm):
    """Language, theme, size and depth of the words."""

    languageChosen = Signal(str)

    def __init__(self, kept: Appearance) -> None:
        super().__init__()
        self._kept = kept
        self.language = combo("languageChoice", tr("Language"), language_titles(), kept.language)
        self.language.activated.connect(self._on_language)
        self.theme = combo("themeChoice", tr("Theme"), scheme_titles(), kept.theme)
        self.theme.currentIndexChanged.connect(self._on_theme)
        percent, least, most = (round(scale * 100) for scale in (kept.font_scale, SMALLEST_SCALE, LARGEST_SCALE))
        self.scale = spin("scaleChoice", tr("Text size"), percent, least, most)
        self.scale.setSingleStep(10)
        self.scale.setSuffix(" %")
        self.scale.valueChanged.connect(self._on_scale)
        self.words = combo("depthChoice", tr("Words"), tuple(zip(DEPTHS, DEPTH_TITLES, strict=True)), kept.depth)
        self.words.setToolTip(tr(_WORDS))
        self.words.currentIndexChanged.connect(self._on_depth)
        self.add(tr("Language"), self.language)
        self.add(tr("Theme"), self.theme)
        self.add(tr("Text size"), self.scale)
        self.add(tr("Words"), self.words)

    @Slot()
    def _on_theme(self) -> None:
        self._kept.theme = chosen(self.theme)
        self.changed.emit("appearance")

    @Slot()
    def _on_depth(self) -> None:
        self._kept.depth = chosen(self.words)
        self.changed.emit("appearance")

    @Slot()
    def _on_language(self) -> None:
        self.languageChosen.emit(chosen(self.language))

    @Slot(int)
    def _on_scale(self, percent: int) -> None:
        self._kept.font_scale = percent / 100
        self.changed.emit("appearance")
