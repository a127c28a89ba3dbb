"""Base class of the views: hooks with default implementations, and signals for requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from PySide6.QtCore import QObject, QPoint, QRect, Qt, Signal
from PySide6.QtGui import QContextMenuEvent, QGuiApplication
from PySide6.QtWidgets import QFrame, QMenu, QWidget

from decodescope.app.theme.themed import Themed
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from decodescope.app.session.side_runs import MeasurementProgress
    from decodescope.app.state.conversation import ChatSummary, Conversation
    from decodescope.app.state.layer_queries import InfluenceMap
    from decodescope.app.state.media import Medium
    from decodescope.app.state.run import Run
    from decodescope.app.state.run_history import RunTreeEntry
    from decodescope.app.state.worker_messages import ModelInfo
    from decodescope.app.views.node_reports import NodeReport
    from decodescope.core import ModelEntry
    from decodescope.core.events import Event


class PresentationHooks:
    """Hooks for presenting a view to an audience."""

    def set_presenting(self, on: bool) -> None:
        """Switch presenting on or off: leave out what an audience cannot use, and use larger type."""

    def spotlight_rect(self) -> QRect:
        """Return the rectangle of the choice at the cursor, in the view's coordinates; empty if there is none."""
        return QRect()

    def presentation_caption(self) -> str:
        """Return a sentence that explains what this view shows; empty to use the token at the cursor."""
        return ""


class ComparisonHooks:
    """Hooks for runs beside the shown one."""

    @property
    def shows_side_runs(self) -> bool:
        """Whether this view shows the current side runs, including their failures."""
        return False

    def side_runs_changed(self, on: bool) -> None:
        """Handle the start or the end of side runs."""

    def side_runs_progressed(self, progress: MeasurementProgress) -> None:
        """Handle the progress of side runs."""

    def compare_with(self, run: Run) -> None:
        """Compare a saved run with the shown one."""

    def compare_temperatures(self) -> None:
        """Repeat the shown run at a low and at a high temperature."""

    def side_run_finished(self, run: Run) -> None:
        """Handle a finished side run."""


class SettingsHooks:
    """Hooks for the settings of a new run."""

    grammar: object = None
    """Grammar that constrains a new run; None for no constraint."""

    def grammar_changed(self, grammar: object) -> None:
        """Handle another grammar for new runs."""
        self.grammar = grammar


Table = Sequence[Sequence[object]]


class Excerpt(NamedTuple):
    """Text of a view for the clipboard and for export."""

    plain: str
    html: str
    """The same text with its colours."""


class ViewSignals(QObject):
    """All requests of a view. The window connects every signal once."""

    tokenActivated = Signal(int)
    """The user picked token i of the shown text."""
    sequenceActivated = Signal(int)
    """Show text n."""
    cursorRequested = Signal(int)
    """Draw the first n tokens (steps of a beam search)."""
    reportSelected = Signal(object)
    """Show a NodeReport in the inspector; None: show tokens again."""
    inspectorRequested = Signal()
    """Show the inspector."""
    sideRunsRequested = Signal(object)
    """Run these requests beside the shown run; each result goes to `View.side_run_finished`."""
    stopRequested = Signal()
    """Stop the current run and keep its results."""
    samplesRequested = Signal(int)
    """Generate n samples with the current settings."""
    runActivated = Signal(object)
    """Show this existing run in all views."""
    prefixSaveRequested = Signal(str)
    """Save the prefix that the run has read to this file."""
    prefixLoadRequested = Signal(str)
    """Load a prefix from this file."""
    branchRequested = Signal(object)
    """Branch from a position of the shown text (an `app.state.branching.Replacement`), or from a node of a search's
    tree (an `Onward`).
    """
    wordInputRequested = Signal()
    """Let the user type other words in place of the selected token."""
    fillRequested = Signal(str)
    """Fill the empty view: run an action named in `app.state.empty_view`."""
    relatedRunRequested = Signal(str)
    """Show another run of the same run tree, by its id."""
    mediumRequested = Signal(str)
    """Load the media file at this path; the result goes to `View.medium_loaded`."""
    updateRequested = Signal()
    """Deliver what the session has buffered for this view: its contents are about to be read while it is hidden."""
    newChatRequested = Signal()
    regenerateRequested = Signal(object)
    """Write another answer beside this `ConversationTurn`; None for the last answer."""
    turnEdited = Signal(object, str, str)
    """A turn was edited: the `ConversationTurn`, its new text, and an action of `app.state.conversation`."""
    siblingRequested = Signal(object, int)
    """Show the turn that many places after this one: another answer, or another wording of a message."""
    systemPromptChosen = Signal(str)
    turnSettingsRequested = Signal(object)
    """Apply the settings that this turn was made with."""
    chatListToggled = Signal(bool)
    """The list of chats was shown or hidden."""
    chatListRequested = Signal()
    """List the saved chats; the result goes to `View.chats_listed`."""
    chatOpened = Signal(str)
    chatRenamed = Signal(str, str)
    chatDeleted = Signal(str)
    deletedChatRestored = Signal()
    chatImportRequested = Signal()
    chatExportRequested = Signal(str, str)
    """Export the chat with this id, empty for the open one, as a file of this kind: `json` or `md`."""
    overflowPolicyChosen = Signal(str)
    """Set the chat's policy for a full context: one of `app.state.conversation`."""


class View(Themed, QFrame, PresentationHooks, ComparisonHooks, SettingsHooks):
    """A view of the run. Hooks that are not overridden do nothing; requests go out as `signals`."""

    report: NodeReport | None = None
    """Report that the inspector shows while this view is in front; None for tokens."""
    chooses_sequence = False
    """Whether the user can switch between several texts in the view itself."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.signals = ViewSignals(self)

    def header_widget(self) -> QWidget | None:
        """Return the view's tools, for the right end of the tab bar."""
        return None

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """Open the menu of what is under the pointer; parts with a menu of their own open that instead."""
        self.create_context_menu(event.pos()).popup(event.globalPos())

    def create_context_menu(self, position: QPoint) -> QMenu:
        """Return a menu for this position, which deletes itself when it closes: the view's own actions, and copying."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.add_context_actions(menu, position)
        if not menu.isEmpty():
            menu.addSeparator()
        menu.addAction(tr("Copy as a table"), self.copy_table).setEnabled(bool(self.current_table()))
        menu.addAction(tr("Copy as an image"), self.copy_image)
        return menu

    def add_context_actions(self, menu: QMenu, position: QPoint) -> None:
        """Add the view's actions for this position to its context menu."""

    def copy_table(self) -> None:
        """Copy the view's table as CSV."""
        from decodescope.app.state.text_formats import to_csv

        QGuiApplication.clipboard().setText(to_csv(self.current_table()))

    def copy_image(self) -> None:
        """Copy a picture of the view at twice its resolution."""
        from decodescope.app.widgets.widget_pictures import render_widget

        QGuiApplication.clipboard().setImage(render_widget(self, self._theme.color("window"), 2.0))

    def selected_node_menu(self) -> QMenu | None:
        """Return a menu for the selection, not yet open; None if there are no actions."""
        return None

    def bring_up_to_date(self) -> None:
        """Receive the events that were held back while the view is hidden; call before reading or drawing it."""
        self.signals.updateRequested.emit()

    def current_table(self) -> Table:
        """Return `export_table` of the shown run, also while the view is hidden."""
        self.bring_up_to_date()
        return self.export_table()

    def current_excerpt(self) -> Excerpt | None:
        """Return `excerpt` of the shown run, also while the view is hidden."""
        self.bring_up_to_date()
        return self.excerpt()

    def export_table(self) -> Table:
        """Return the contents as a table with a header; empty if there is none."""
        return ()

    def excerpt(self) -> Excerpt | None:
        """Return the view's text, or None."""
        return None

    def saved_view_state(self) -> object:
        """Return the view's own state, to be restored after the window is rebuilt in another language; None for no
        state.
        """
        return None

    def restore_view_state(self, state: Any) -> None:
        """Restore the state of `saved_view_state`; None for an unknown state."""

    def wording_changed(self) -> None:
        """Update all texts after the level of detail of explanations changed."""

    def show_run(self, run: Run | None) -> None:
        """Show another run from its beginning; None shows an empty page."""

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """Handle new events of the run, its end (it has an outcome), or both."""

    def cursor_moved(self, run: Run) -> None:
        """Draw up to the cursor."""

    def selection_changed(self, run: Run) -> None:
        """Handle another selected token, or none."""

    def influence_changed(self, influence: InfluenceMap | None) -> None:
        """Show the influence of the text on the inspected step; None: no step is inspected."""

    def medium_loaded(self, medium: Medium) -> None:
        """Handle a loaded audio clip or image."""

    def model_ready(self, info: ModelInfo) -> None:
        """Handle a loaded model."""

    def models_changed(self, entries: Sequence[ModelEntry]) -> None:
        """Handle the list of available models."""

    def family_changed(self, members: Sequence[RunTreeEntry], shown: str) -> None:
        """Handle the run tree of the shown run, parents before children, and the shown run's id."""

    def set_conversation(self, conversation: Conversation) -> None:
        """Show another chat."""

    def conversation_changed(self) -> None:
        """Handle a turn that was added, removed or finished."""

    def set_message_input(self, is_shown: bool) -> None:
        """Handle that the input for messages is shown below the views, or hidden."""

    def show_chat_list(self, is_shown: bool) -> None:
        """Show or hide the list of chats."""

    def chats_listed(self, chats: Sequence[ChatSummary], deleted: str) -> None:
        """Show the saved chats; `deleted` is the name of the one that can be restored, or empty."""
