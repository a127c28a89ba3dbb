"""ZeRO-R: a step of training without and with it, every block of memory over time."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.state.scale import ScaleRequest
from app.theme.theme import Theme
from app.views.labs.scale.memory_map import MemoryMap
from app.views.labs.scale.running_page import ProcessPage
from app.widgets.wrapped_label import WrappedLabel
from core import catalog
from core.labs import scale
from resources.language import mark, tr

_INTRODUCTION = mark(
    "Beside its numbers a step of training takes memory that comes and goes. Processes that share a model run one step "
    "twice: as usual, and by ZeRO-R, which shares out what is remembered for the way back, and keeps it apart."
)


class ResidualPage(ProcessPage):
    """Two maps of one process's memory, one above the other on the same scale."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(tr("What is run"), 2, parent)
        models = [(entry.name, entry.title) for entry in catalog.bundled()]
        self.form.add_choice("model", tr("Model"), models)
        self.form.add_number("processes", tr("Processes"), 2, 1, scale.MOST_PROCESSES)
        self.without_zero_r, self.with_zero_r = (
            MemoryMap(tr("Without ZeRO-R"), self),
            MemoryMap(tr("With ZeRO-R"), self),
        )
        self.key = WrappedLabel(
            tr(
                "From left to right goes the step, from the bottom up lie the places of memory. What is empty "
                "below a block is a gap."
            ),
            self,
        )
        self.key.setProperty("role", "muted")
        self.lay_out("scaleResidual", self.without_zero_r, self.with_zero_r, self.key)

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes."""
        super().set_theme(theme)
        self.without_zero_r.set_theme(theme)
        self.with_zero_r.set_theme(theme)

    @property
    def measurement(self) -> scale.Residual | None:
        """What came of it."""
        return self.result if isinstance(self.result, scale.Residual) else None

    def sentence_text(self) -> str:
        """What it is, or what came of it."""
        return tr(_INTRODUCTION) if self.measurement is None else scale.explain_residual(self.measurement)

    def show_result(self) -> None:
        """Both maps."""
        found = self.measurement
        for shown in (self.without_zero_r, self.with_zero_r, self.key):
            shown.setVisible(found is not None)
        if found is not None:
            top = max(arena.top for arena in found.arenas)
            for shown, arena in zip((self.without_zero_r, self.with_zero_r), found.arenas, strict=True):
                shown.show_arena(arena, top)

    def current_request(self) -> ScaleRequest:
        """What is set."""
        return ScaleRequest(self.form.choice_value("model"), scale.ZERO_R, self.form.number_value("processes"))
