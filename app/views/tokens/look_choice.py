"""How the reader wants tokens drawn: coloured by what, and with white space seen or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Slot

import core
from app.state.run import Run
from app.state.scores import BAND_NAMES, scores_of, shares
from app.views.text import influence
from app.views.text.drafter_underlines import KEY
from app.views.text.row_painting import BAND_SCORES, COLOURINGS, thickness
from app.views.text.watermark_underlines import KEY as SIGNS
from app.views.tokens.area import TokenArea
from app.views.tokens.tools import TokenTools
from app.widgets.legend import Legend, LegendStep
from core import strategies
from resources.language import mark, tr

if TYPE_CHECKING:
    from app.state.layer_queries import Influence

_KEYS = {"origin": KEY, "influence": influence.KEY, "watermark": SIGNS}
HINT = mark("click a token, or ← →")
CHANGED = mark("▾ the search changed its mind here")
BRANCHED = mark("│ the branch begins here")


class LookChoice(QObject):
    """Takes what is chosen in the tools to the area, and keeps the key to the colours true."""

    def __init__(self, area: TokenArea, tools: TokenTools, legend: Legend) -> None:
        super().__init__(area)
        self._area, self._tools, self._legend = area, tools, legend
        self._kind = "plain"
        self._colourings = {
            "plain": "probability", "drafted": "origin", "scored": "band", "compared": "difference",
            "marked": "watermark",
        }  # fmt: skip
        """What tokens are coloured by, by the kind of run."""
        tools.colouringChosen.connect(self._choose_colouring)
        tools.whitespaceToggled.connect(self._set_whitespace)

    def begin(self, run: Run | None) -> None:
        """Another run: colour it as the last of its kind."""
        self._kind = _kind(run)
        self._tools.offer("difference", self._kind == "compared")
        self._tools.offer("watermark", self._kind == "marked")
        self.set_colouring(self._colourings[self._kind])

    def set_colouring(self, name: str) -> None:
        """Colour tokens by one of `COLOURINGS`."""
        self._area.look.colouring = name
        self._tools.set_colouring(name)
        _title, low, high = COLOURINGS[name]
        steps = _band_steps(self._area.run) if name == "band" else ()
        self._legend.set_words(tr(low), tr(high), self.hint(), steps)
        self._area.viewport().update()

    def show_influence(self, found: Influence | None) -> None:
        """Draw what a step hangs on instead, as long as that is asked."""
        self._area.look.influence = found
        self._tools.offer("influence", found is not None)
        if found is not None:
            self.set_colouring("influence")
        elif self._area.look.colouring == "influence":
            self.set_colouring(self._colourings[self._kind])

    def hint(self) -> str:
        """What the key says beside the colours: the marks that are there, and what to do."""
        look = self._area.look
        if look.colouring == "influence" and look.influence is not None and look.influence.kind == "attention":
            return tr(influence.LOOKED)
        if look.colouring in _KEYS:
            return tr(_KEYS[look.colouring])
        marks = [tr(words) for words, there in ((CHANGED, look.changed), (BRANCHED, look.branch is not None)) if there]
        return "   ".join([*marks, tr(HINT)])

    @Slot(str)
    def _choose_colouring(self, name: str) -> None:
        """What the reader picks holds for runs of the same kind."""
        if name != "influence":  # it ends with the step that it speaks of
            self._colourings[self._kind] = name
        self.set_colouring(name)

    @Slot(bool)
    def _set_whitespace(self, shown: bool) -> None:
        """Show or hide ␣ and ↵."""
        self._area.look.whitespace = shown
        self._area.viewport().update()


def _band_steps(run: Run | None) -> tuple[LegendStep, ...]:
    """GLTR's bands in the key, with their parts of a scored text."""
    parts = [f": {part}" for part in shares(scores_of(run.tokens))] if run is not None and run.is_scored else None
    names = [f"{tr(name)}{part}" for name, part in zip(BAND_NAMES, parts or [""] * len(BAND_NAMES), strict=True)]
    names[0] = tr("rank {band}").format(band=names[0])
    return tuple(LegendStep(name, score, thickness(score)) for name, score in zip(names, BAND_SCORES, strict=True))


def _kind(run: Run | None) -> str:
    """By which the colours are remembered."""
    if run is None:
        return "plain"
    if core.watermark_settings(run.request.options):
        return "marked"
    if run.is_scored:
        return "compared" if run.request.second or run.compared else "scored"
    strategy = strategies.registry.get(run.request.strategy)
    return "drafted" if strategy is not None and strategy.speculates else "plain"
