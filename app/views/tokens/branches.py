"""Context menu of a token: alternatives, each of which starts a branch."""

from __future__ import annotations

from functools import partial

from PySide6.QtWidgets import QMenu

from decodescope.app.state.branching import TokenReplacement, forbidden_ids, forbidden_reason
from decodescope.app.state.run import Run
from decodescope.app.views.base import ViewSignals
from decodescope.app.widgets.plain_text import caption
from decodescope.core import words
from decodescope.resources.language import tr

MAX_ALTERNATIVES = 8
"""Maximum number of alternatives in the menu."""


def add_branch_actions(menu: QMenu, run: Run, token: int, signals: ViewSignals, grammar: object = None) -> None:
    """Add the alternatives of a token, and an entry for typing other words.

    `grammar`: the grammar that constrains a new run.
    """
    chosen = run.tokens[token]
    forbidden = forbidden_ids(run, chosen, grammar)
    others = [item for item in chosen.alternatives if item.id != chosen.id][:MAX_ALTERNATIVES]
    heading = menu.addAction(caption(tr("Replace {piece}").format(piece=words.quote(chosen.piece, chosen.is_special))))
    heading.setEnabled(False)  # most styles draw a menu section as a bare line
    for item in others:
        if item.id in forbidden:
            title = "\t".join((forbidden_reason(item.text, item.special), words.brief_percent(item.raw_probability)))
            menu.addAction(caption(title)).setEnabled(False)
            continue
        title = tr("Continue with {text}\t{share}").format(
            text=words.quote(item.text, item.special), share=words.brief_percent(item.raw_probability)
        )
        menu.addAction(caption(title), partial(signals.branchRequested.emit, TokenReplacement(token, item.id)))

    def type_words() -> None:
        signals.tokenActivated.emit(token)
        signals.inspectorRequested.emit()
        signals.wordInputRequested.emit()

    menu.addAction(tr("Continue with other words…"), type_words)
    menu.addSeparator()
