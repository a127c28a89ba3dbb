"""What can be compared, as chips to choose from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QPushButton, QWidget

from app.state.comparison.candidates import ComparisonCandidate
from app.widgets.flow_layout import FlowRow, clear_layout
from app.widgets.plain_text import caption, tooltip
from resources.language import tr


class CandidateChips(FlowRow):
    """A chip for everything that can be compared; what cannot is greyed, with the reason."""

    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._candidates: tuple[ComparisonCandidate, ...] = ()
        self._chips: dict[str, QPushButton] = {}
        self._choices: dict[str, bool] = {}

    def show_candidates(self, candidates: Sequence[ComparisonCandidate], first_is_reference: bool) -> None:
        """Offer these; what the reader has chosen before stays chosen. With `first_is_reference` the first one is always compared:
        the others are measured by it."""
        self._candidates = tuple(candidates)
        clear_layout(self.flow)
        self._chips = {}
        for number, candidate in enumerate(candidates):
            chip = QPushButton(caption(candidate.title), self)
            chip.setCheckable(True)
            chip.setObjectName(f"compare.{candidate.key}")
            chip.setProperty("role", "chip")
            chip.setChecked(not candidate.reason and self._choices.get(candidate.key, candidate.chosen))
            chip.setEnabled(not candidate.reason and not (first_is_reference and number == 0))
            chip.setToolTip(tooltip(candidate.reason or candidate.summary))
            if first_is_reference and number == 0 and not candidate.reason:
                chip.setChecked(True)
                chip.setToolTip(
                    tooltip(tr("{summary}\nThe others are compared with it.").format(summary=candidate.summary))
                )
            chip.clicked.connect(self._on_clicked)
            self._chips[candidate.key] = chip
            self.flow.addWidget(chip)
        self.updateGeometry()

    def set_wanted(self, choices: Mapping[str, bool]) -> None:
        """Have these chosen or not, by their keys, when they are offered."""
        self._choices |= choices

    @property
    def chosen(self) -> list[ComparisonCandidate]:
        """What is to be compared, in order."""
        return [candidate for candidate in self._candidates if self._chips[candidate.key].isChecked()]

    @property
    def unavailable(self) -> list[ComparisonCandidate]:
        """What cannot be."""
        return [candidate for candidate in self._candidates if candidate.reason]

    @Slot()
    def _on_clicked(self) -> None:
        self._choices |= {key: chip.isChecked() for key, chip in self._chips.items() if chip.isEnabled()}
        self.changed.emit()
