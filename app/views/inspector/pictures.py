"""Pictures of the stages that tell more of a step than how many they left over. Made with the first such step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.state.run import Run
from app.theme.theme import Theme
from app.views.inspector import stage_values as values
from app.views.inspector.inspector_section import InspectorSection
from app.views.inspector.stage_parts import (
    RepetitionPicture,
    ScoreHistogramPicture,
    StagePicture,
    SurprisePicture,
    TemperaturePicture,
    TopCutPicture,
    WatermarkPicture,
)  # fmt: skip
from core import explain_stage, stage_label

if TYPE_CHECKING:
    from core.events import Stage, StageDetail, TokenChosen


def picture_class(detail: StageDetail) -> Callable[[Theme], StagePicture] | None:
    """The kind of picture that shows it."""
    if detail.repeats is not None:
        return RepetitionPicture
    if detail.top_cut is not None:
        return TopCutPicture
    if detail.spread is not None:
        return ScoreHistogramPicture
    if detail.aim is not None:
        return SurprisePicture
    if detail.heat is not None:
        return TemperaturePicture
    return WatermarkPicture if detail.sign is not None else None


class StagePictures(QWidget):
    """A section for each of these stages: its name, what it did in words, and the picture of it."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._sections: dict[str, tuple[InspectorSection, StagePicture]] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        for section, picture in self._sections.values():
            picture.set_theme(theme)
            section.set_theme(theme)
            section.setContentsMargins(0, theme.px(14), 0, 0)

    def show_step(self, run: Run, token: TokenChosen) -> None:
        """Show those of one step; the others are hidden."""
        stages = {stage.name: stage for stage in token.funnel if stage.detail is not None}
        for name, stage in stages.items():
            self._show_stage(name, stage, run, token)
        for name, (section, _) in self._sections.items():
            section.setVisible(name in stages)

    def activate_layout(self) -> None:
        """Give every part its place at once."""
        for section, _ in self._sections.values():
            section.activate_layout()
        self._column.activate()

    def _show_stage(self, name: str, stage: Stage, run: Run, token: TokenChosen) -> None:
        assert stage.detail is not None
        entry = self._sections.get(name) or self._create(name, stage.detail)
        if entry is None:
            return
        section, picture = entry
        sentence = explain_stage(stage) or values.watermark_sentence(stage.name, run, token)
        section.set_title(stage_label(stage), sentence.replace(" %", "\u00a0%"))
        picture.show_detail(stage.detail, run, token, sentence)

    def _create(self, name: str, detail: StageDetail) -> tuple[InspectorSection, StagePicture] | None:
        kind = picture_class(detail)
        if kind is None:
            return None
        picture = kind(self._theme)
        section = InspectorSection("", picture, f"param.{name}", self)
        self._sections[name] = section, picture
        self._column.addWidget(section)
        self.set_theme(self._theme)
        return section, picture
