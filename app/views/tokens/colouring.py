"""Colouring of tokens: the tools that choose it, the legend, and the choice remembered per kind of run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QHBoxLayout, QMenu, QToolButton, QWidget

from decodescope import core
from decodescope.app.state.answer_thinking import thinking_summary
from decodescope.app.state.run import Run
from decodescope.app.state.token_stats import BAND_NAMES, band_percentages, compute_score_stats
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.views.text import token_decorations
from decodescope.app.views.text.row_painting import BAND_SCORES, COLOURINGS, underline_thickness
from decodescope.app.views.text.token_decorations import ORIGIN_LEGEND
from decodescope.app.views.text.token_decorations import WATERMARK_LEGEND as SIGNS
from decodescope.app.views.tokens.area import TokenArea
from decodescope.app.widgets.building import arrange, set_up
from decodescope.app.widgets.legend import ColourLegend, LegendStep
from decodescope.core import strategies
from decodescope.resources.language import mark, tr

if TYPE_CHECKING:
    from decodescope.app.state.layer_queries import InfluenceMap

TERSE_MIN_SCALE = 1.25
"""Scale of the type above which the word "Colour" is left out."""


class TokenTools(Themed, QWidget):
    """A menu of colourings and a switch for ␣ and ↵."""

    colouringChosen = Signal(str)
    whitespaceToggled = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._is_terse = False
        row = arrange(QHBoxLayout(self), margins=0, spacing=4)
        self.colour = set_up(QToolButton(self), name="colourButton")
        self.colour.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.colour.setAccessibleName(tr("What the colours show"))
        self.colour.setToolTip(tr("What the underlines show"))
        self.colour.setMenu(self._menu())
        self.whitespace = set_up(QToolButton(self), name="whitespaceButton")
        self.whitespace.setCheckable(True)
        self.whitespace.setText("␣↵")
        self.whitespace.setAccessibleName(tr("Show spaces and line breaks"))
        self.whitespace.setToolTip(tr("Show spaces and line breaks"))
        self.whitespace.toggled.connect(self.whitespaceToggled)
        arrange(row, self.colour, self.whitespace)
        self.set_colouring("probability")
        for name in ("difference", "influence"):
            self.set_colouring_available(name, False)

    def _menu(self) -> QMenu:
        menu = QMenu(self)
        self._group = QActionGroup(menu)
        for name, (title, *_words) in COLOURINGS.items():
            action = menu.addAction(tr(title))
            action.setCheckable(True)
            action.setData(name)
            self._group.addAction(action)
        self._group.triggered.connect(self._on_action)
        return menu

    def set_colouring_available(self, name: str, is_available: bool) -> None:
        """Set whether a colouring can be chosen."""
        for action in self._group.actions():
            if action.data() == name:
                action.setVisible(is_available)

    def set_colouring(self, name: str) -> None:
        """Check `name` as the current colouring without emitting a signal."""
        for action in self._group.actions():
            action.setChecked(action.data() == name)
        self._name = name
        what = tr(COLOURINGS[name][0]).lower()
        self.colour.setText(f"{what} ⌄" if self._is_terse else tr("Colour: {what} ⌄").format(what=what))

    def restyle(self, theme: Theme) -> None:
        self._is_terse = theme.scale > TERSE_MIN_SCALE
        self.set_colouring(self._name)
        for button in (self.colour, self.whitespace):
            button.setFont(theme.font(12))
            button.setCursor(Qt.CursorShape.PointingHandCursor)

    @Slot(QAction)
    def _on_action(self, action: QAction) -> None:
        self.set_colouring(action.data())
        self.colouringChosen.emit(action.data())


_LEGENDS = {"origin": ORIGIN_LEGEND, "influence": token_decorations.INFLUENCE_LEGEND, "watermark": SIGNS}
SELECT_HINT = mark("click a token, or ← →")
LEAD_CHANGE_HINT = mark("▾ the best beam changed here")
BRANCH_HINT = mark("│ the branch begins here")
THINKING_HINT = mark("violet: thinking, {summary}")


class ColouringController(QObject):
    """Applies the choices in the tools to the area, and keeps the colour legend up to date."""

    def __init__(self, area: TokenArea, tools: TokenTools, legend: ColourLegend) -> None:
        super().__init__(area)
        self._area, self._tools, self._legend = area, tools, legend
        self._run_kind = "plain"
        self._colourings = {
            "plain": "probability", "drafted": "origin", "scored": "band", "compared": "difference",
            "marked": "watermark",
        }  # fmt: skip
        """Colouring by kind of run."""
        tools.colouringChosen.connect(self._choose_colouring)
        tools.whitespaceToggled.connect(self._set_whitespace)

    def apply_for_run(self, run: Run | None) -> None:
        """Apply the colouring last used for this kind of run."""
        self._run_kind = _colouring_kind(run)
        self._tools.set_colouring_available("difference", self._run_kind == "compared")
        self._tools.set_colouring_available("watermark", self._run_kind == "marked")
        self.set_colouring(self._colourings[self._run_kind])

    def set_colouring(self, name: str) -> None:
        """Colour tokens by one of `COLOURINGS`."""
        self._area.paint_options.colouring = name
        self._tools.set_colouring(name)
        _title, low, high = COLOURINGS[name]
        steps = _band_steps(self._area.run) if name == "band" else ()
        self._legend.set_labels(tr(low), tr(high), self.legend_hint(), steps)
        self._area.viewport().update()

    def show_influence(self, influence: InfluenceMap | None) -> None:
        """Show the influence on a step instead, or end that with None."""
        self._area.paint_options.influence = influence
        self._tools.set_colouring_available("influence", influence is not None)
        if influence is not None:
            self.set_colouring("influence")
        elif self._area.paint_options.colouring == "influence":
            self.set_colouring(self._colourings[self._run_kind])

    def legend_hint(self) -> str:
        """Return the text of the legend beside the colours: the marks in use, and what to do."""
        options = self._area.paint_options
        if options.colouring == "influence" and options.influence is not None and options.influence.kind == "attention":
            return tr(token_decorations.ATTENTION_LEGEND)
        run = self._area.run
        is_forced = run is not None and any(token.origin == "forced" for token in run.tokens)
        if options.colouring in _LEGENDS:
            forced = [tr(token_decorations.FORCED_LEGEND)] if is_forced and options.colouring == "origin" else []
            return "   ".join([tr(_LEGENDS[options.colouring]), *forced])
        marks = [
            tr(words)
            for words, there in (
                (LEAD_CHANGE_HINT, options.lead_changes),
                (BRANCH_HINT, options.branch_position is not None),
            )
            if there
        ]
        marks += [tr(token_decorations.FORCED_LEGEND)] if is_forced else []
        if run is not None and (thinking := run.thinking).ranges:
            marks.append(tr(THINKING_HINT).format(summary=thinking_summary(thinking, len(run.tokens))))
        return "   ".join([*marks, tr(SELECT_HINT)])

    @Slot(str)
    def _choose_colouring(self, name: str) -> None:
        """Remember the user's choice for runs of the same kind."""
        if name != "influence":  # that colouring ends when the step is deselected
            self._colourings[self._run_kind] = name
        self.set_colouring(name)

    @Slot(bool)
    def _set_whitespace(self, shown: bool) -> None:
        """Show or hide ␣ and ↵."""
        self._area.paint_options.whitespace = shown
        self._area.viewport().update()


def _band_steps(run: Run | None) -> tuple[LegendStep, ...]:
    """Return GLTR's bands for the legend, with their fractions if the text was scored."""
    parts = (
        [f": {part}" for part in band_percentages(compute_score_stats(run.tokens))]
        if run is not None and run.is_scored
        else None
    )
    names = [f"{tr(name)}{part}" for name, part in zip(BAND_NAMES, parts or [""] * len(BAND_NAMES), strict=True)]
    names[0] = tr("rank {band}").format(band=names[0])
    return tuple(
        LegendStep(name, score, underline_thickness(score)) for name, score in zip(names, BAND_SCORES, strict=True)
    )


def _colouring_kind(run: Run | None) -> str:
    """Return the kind of run by which colourings are remembered."""
    if run is None:
        return "plain"
    if core.watermark_settings(run.request.options):
        return "marked"
    if run.is_scored:
        return "compared" if run.request.second or run.comparisons else "scored"
    strategy = strategies.registry.get(run.request.strategy)
    return "drafted" if strategy is not None and strategy.speculates else "plain"
