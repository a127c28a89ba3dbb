"""The funnel of one step: stages that can be dragged to another place, and the pictures of those that tell more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QPushButton, QVBoxLayout, QWidget

from app.state.what_if import move_stage, order_setting
from app.theme.theme import Theme
from app.views.inspector.inspector_section import InspectorSection
from app.widgets.funnel import FunnelStage, FunnelWidget
from resources.language import tr

if TYPE_CHECKING:
    from app.state.run import Run
    from app.views.inspector.pictures import StagePictures
    from core.events import TokenChosen


class FunnelSection(QWidget):
    """`orderWanted(names)`: the stages are to act in this order; None: in the default one."""

    orderWanted = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.stages = FunnelWidget(theme)
        self.stages.setObjectName("funnel")
        self._section = InspectorSection(tr("Funnel"), self.stages, "row.funnel", self)
        self._pictures: StagePictures | None = None
        """Made with the first step that has one."""
        self._default_order = QPushButton(tr("Default order"), self)
        self._default_order.setObjectName("defaultOrder")
        self._default_order.setProperty("role", "quiet")
        self._default_order.setToolTip(tr("The stages are to act in the order of transformers again"))
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addWidget(self._section)
        self._column.addWidget(self._default_order, 0, Qt.AlignmentFlag.AlignLeft)
        self._default_order.clicked.connect(lambda: self.orderWanted.emit(None))
        self.stages.stageMoved.connect(self._on_moved)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        self._theme = theme
        self._column.setSpacing(theme.px(4))
        for part in (self.stages, self._section):
            part.set_theme(theme)
        if self._pictures is not None:
            self._pictures.set_theme(theme)

    def show_step(self, run: Run, token: TokenChosen, stages: Sequence[FunnelStage]) -> None:
        """Show what the stages of a step left over; nothing where it had none."""
        self.stages.set_stages(stages)
        is_usual = order_setting(self.stages.movable_stages) is None
        remark = "" if is_usual else tr("Order of the stages changed.")
        if run.started is not None and run.started.engine:
            remark = tr("{engine} applies its settings on its own machine, and tells nothing of the stages.").format(
                engine=run.started.engine
            )
        self._section.set_title(tr("Funnel"), remark)
        self.stages.setVisible(bool(stages))
        self._default_order.setVisible(not is_usual)
        self._show_pictures(run, token)
        self.setVisible(bool(stages) or (run.started is not None and bool(run.started.engine)))

    def activate_layout(self) -> None:
        """Give every part its place at once."""
        if self._pictures is not None:
            self._pictures.activate_layout()
        self._section.activate_layout()
        self._column.activate()

    def _show_pictures(self, run: Run, token: TokenChosen) -> None:
        """Of stages that tell more than how many they left."""
        has_details = any(stage.detail is not None for stage in token.funnel)
        if has_details and self._pictures is None:
            from app.views.inspector.pictures import StagePictures

            self._pictures = StagePictures(self._theme, self)
            self._column.insertWidget(1, self._pictures)
        if self._pictures is not None:
            self._pictures.setVisible(has_details)
            if has_details:
                self._pictures.show_step(run, token)

    @Slot(str, int)
    def _on_moved(self, stage: str, index: int) -> None:
        """A stage was dragged."""
        self.orderWanted.emit(order_setting(move_stage(self.stages.movable_stages, stage, index)))
