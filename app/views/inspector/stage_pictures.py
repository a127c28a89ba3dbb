"""The pictures of single stages: an arc, a cut from the top, a score histogram, values on a scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout, QWidget

from decodescope.app.state.run import Run
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.views.inspector import stage_values as values
from decodescope.app.views.inspector.inspector_section import InspectorSection
from decodescope.app.widgets.bars import BarList
from decodescope.app.widgets.building import arrange
from decodescope.app.widgets.plots import PlotPanel
from decodescope.app.widgets.repeat_arc import RepeatArc
from decodescope.app.widgets.scale import NumberScale
from decodescope.core import explain_stage, stage_label
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.events import Stage, StageDetail, TokenChosen


class StagePicture(Themed, QWidget):
    """Base of a stage's picture: parts in a column."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.column = arrange(QVBoxLayout(self), margins=0)

    def restyle(self, theme: Theme) -> None:
        self.column.setSpacing(theme.px(6))

    def show_detail(self, detail: StageDetail, run: Run, token: TokenChosen, sentence: str) -> None:
        """Show the detail of one step; `sentence` is the same in words."""


class RepetitionPicture(StagePicture):
    """DRY: the repeated passage, and all penalized tokens."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self.arc, self.bars = RepeatArc(theme), BarList(theme, tr("Penalized"))
        arrange(self.column, self.arc, self.bars)

    def show_detail(self, detail: StageDetail, run: Run, token: TokenChosen, sentence: str) -> None:
        """Show the arc to the longest passage, and bars if several tokens were penalized."""
        found = detail.repeats.found if detail.repeats is not None else ()
        self.arc.setVisible(bool(found))
        self.bars.setVisible(len(found) > 1)
        if found:
            self.arc.show_passage(values.repeated_passage(found[0], run, token), sentence)
        self.bars.set_rows(values.repeat_rows(found, token), (tr("passage"), tr("penalty")), "00.00")


class TopCutPicture(StagePicture):
    """XTC: the random number on its scale, and the top tokens that were removed or kept."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self.scale, self.bars = NumberScale(theme, tr("Random draw")), BarList(theme, tr("Likeliest tokens"))
        arrange(self.column, self.scale, self.bars)

    def show_detail(self, detail: StageDetail, run: Run, token: TokenChosen, sentence: str) -> None:
        """Show the random number and the top tokens."""
        if detail.top_cut is None:
            return
        cut = detail.top_cut
        self.scale.show_marks(0.0, 1.0, (0.0, cut.chance), values.draw_marks(cut), sentence)
        self.bars.setVisible(bool(cut.likely))
        self.bars.set_rows(values.top_rows(cut, token.id), widest=values.WIDEST_TOP_FIGURE)


class ScoreHistogramPicture(StagePicture):
    """Top-nσ: the cut-off line in the histogram of the scores."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self.plot = PlotPanel(tr("Scores of all tokens"), self, size=(240, 130), min_size=(120, 110))
        self.column.addWidget(self.plot)

    def restyle(self, theme: Theme) -> None:
        super().restyle(theme)
        self.plot.setFixedHeight(theme.px(130))

    def show_detail(self, detail: StageDetail, run: Run, token: TokenChosen, sentence: str) -> None:
        """Show the histogram of this step."""
        if detail.spread is not None:
            self.plot.show_figure(values.score_histogram(detail.spread))


class SurprisePicture(StagePicture):
    """Mirostat: the token's surprise, the target, and the limit."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self.scale = NumberScale(theme, tr("Surprise"))
        self.column.addWidget(self.scale)

    def show_detail(self, detail: StageDetail, run: Run, token: TokenChosen, sentence: str) -> None:
        """Show the surprise in bits, from zero to the limit."""
        if detail.aim is not None:
            aim = detail.aim
            end = max(aim.limit, aim.surprise, 2 * aim.target)
            self.scale.show_marks(0.0, end, (0.0, max(aim.limit, 0.0)), values.surprise_marks(aim), sentence)


class TemperaturePicture(StagePicture):
    """Dynamic temperature: the step's temperature between the minimum and the maximum."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self.scale = NumberScale(theme, tr("Temperature"))
        self.column.addWidget(self.scale)

    def show_detail(self, detail: StageDetail, run: Run, token: TokenChosen, sentence: str) -> None:
        """Show the temperature between its two limits."""
        if detail.heat is not None:
            heat = detail.heat
            filled = (heat.low, heat.temperature)
            self.scale.show_marks(heat.low, heat.high, filled, values.temperature_marks(heat), sentence)


class WatermarkPicture(StagePicture):
    """Watermark: the statistic up to this token, and the detection threshold."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self.scale = NumberScale(theme, tr("Watermark"))
        self.column.addWidget(self.scale)

    def show_detail(self, detail: StageDetail, run: Run, token: TokenChosen, sentence: str) -> None:
        """Show the standard deviations above chance."""
        found = values.watermark_up_to(values.stage_name(detail, token), run, token)
        if found is not None:
            low, high = min(found.z, -2.0), max(found.z, values.WATERMARK_THRESHOLD + 2)
            self.scale.show_marks(
                low, high, (values.WATERMARK_THRESHOLD, high), values.watermark_marks(found), sentence
            )


def picture_class(detail: StageDetail) -> Callable[[Theme], StagePicture] | None:
    """Return the picture class for a stage's detail."""
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


class StagePictures(Themed, QWidget):
    """One section per stage with details: its name, its effect in words, and a picture."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._sections: dict[str, tuple[InspectorSection, StagePicture]] = {}
        self._column = arrange(QVBoxLayout(self), margins=0, spacing=0)

    def restyle(self, theme: Theme) -> None:
        for section, _ in self._sections.values():
            section.setContentsMargins(0, theme.px(14), 0, 0)

    def show_step(self, run: Run, token: TokenChosen) -> None:
        """Show the stages of one step and hide the others."""
        stages = {stage.name: stage for stage in token.funnel if stage.detail is not None}
        for name, stage in stages.items():
            self._show_stage(name, stage, run, token)
        for name, (section, _) in self._sections.items():
            section.setVisible(name in stages)

    def activate_layout(self) -> None:
        """Lay out all parts at once."""
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
