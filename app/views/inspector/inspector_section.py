"""Sections of the inspector: a heading with one part below, and functions that fill the bar sections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QMargins
from PySide6.QtWidgets import QVBoxLayout, QWidget

from decodescope.app.state.run import Run
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.views.inspector import inspector_rows
from decodescope.app.views.shared.glossary_tooltip import add_glossary_tooltip
from decodescope.app.views.text.token_wording import is_remote_token
from decodescope.app.widgets.bars import BarList
from decodescope.app.widgets.building import arrange, show_text
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.core import words
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.core.events import TokenChosen


def page_margins(theme: Theme, scroll_bar_width: int) -> QMargins:
    """Return the margins of a page; the right one is smaller by `scroll_bar_width`, the width of the scroll bar."""
    margin = theme.px(16)
    return QMargins(margin, theme.px(14), margin - min(margin, scroll_bar_width), margin)


class InspectorSection(Themed, QWidget):
    """A small heading, an optional remark, and one part below."""

    def __init__(self, title: str, part: QWidget, term: str, parent: QWidget | None = None) -> None:
        """Create the section; `term` is the glossary entry that explains it."""
        super().__init__(parent)
        self._title, self._remark = PlainLabel(_capitals(title), self), PlainLabel("", self)
        self._title.setProperty("role", "heading")
        self._remark.setProperty("role", "muted")
        self._remark.setWordWrap(True)
        self._remark.hide()
        self.term = term
        add_glossary_tooltip(self._title, lambda: self.term)
        self._column = arrange(QVBoxLayout(self), self._title, self._remark, part, margins=0)

    def restyle(self, theme: Theme) -> None:
        self._column.setSpacing(theme.px(7))

    def activate_layout(self) -> None:
        """Activate the layout at once."""
        self._column.activate()

    def set_title(self, title: str, remark: str = "") -> None:
        """Set the heading and the remark below it."""
        self._title.setText(_capitals(title))
        show_text(self._remark, remark)


def _capitals(title: str) -> str:
    """Return the title in capitals, except Greek letters: σ and τ are symbols."""
    return "".join(letter.upper() if letter.isascii() else letter for letter in title)


def show_alternatives(section: InspectorSection, bars: BarList, token: TokenChosen) -> None:
    """Show the alternatives or candidates of a token."""
    section.show()
    bars.setVisible(bool(token.alternatives))
    section.term = "row.alternatives"
    if not token.alternatives and is_remote_token(token):
        section.set_title(tr("Alternatives"), tr("Not reported by the engine."))
    elif not token.alternatives:
        section.set_title(tr("Alternatives"), tr("Not recorded: this run stored no alternatives (top n was 0)."))
    elif inspector_rows.is_contrastive(token):
        remark = tr("Score: the model's confidence minus the similarity to the text so far.")
        section.set_title(tr("Candidates"), remark)
        section.term = "row.candidates contrastive"
        bars.set_rows(inspector_rows.contrastive_rows(token), tuple(map(tr, inspector_rows.CONTRASTIVE_HEAD)), "−0.00")
    else:
        section.set_title(tr("Alternatives"))
        bars.set_rows(
            inspector_rows.alternative_rows(token), inspector_rows.alternative_columns(token), words.LONGEST_PERCENT
        )


def show_comparison_model(section: InspectorSection, bars: BarList, run: Run | None, token: TokenChosen) -> None:
    """Show the comparison model's figures for a token that both models scored."""
    has_comparison = run is not None and token.step < len(run.comparisons)
    section.setVisible(has_comparison)
    if run is not None and run.started is not None and has_comparison:
        second = run.comparisons[token.step]
        section.set_title(run.started.second, inspector_rows.comparison_facts(second))
        bars.set_rows(inspector_rows.compared_model_rows(second), widest=words.LONGEST_PERCENT)


def show_layer_choice(section: InspectorSection, bars: BarList, token: TokenChosen) -> None:
    """Show which layer the last one was contrasted with."""
    choice = token.layer_choice
    section.setVisible(choice is not None)
    if choice is not None:
        section.set_title(tr("Layers"), tr("Divergence of each layer's prediction from the last layer's."))
        bars.set_rows(inspector_rows.dola_layer_rows(choice), widest="0.0e-00")
