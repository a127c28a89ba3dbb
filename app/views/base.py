"""What every view is: a widget that is told of runs and asks for things. No view is asked what it can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from PySide6.QtCore import QObject, QRect, Signal
from PySide6.QtWidgets import QFrame, QMenu, QWidget

if TYPE_CHECKING:
    from app.session.side_runs import MeasurementProgress
    from app.state.conversation import Conversation
    from app.state.layer_queries import InfluenceMap
    from app.state.media import Medium
    from app.state.run import Run
    from app.state.run_history import RunTreeEntry
    from app.state.worker_messages import ModelInfo
    from app.theme.theme import Theme
    from app.views.node_reports import NodeReport
    from core import ModelEntry
    from core.events import Event


class PresentationHooks:
    """A view before an audience."""

    def set_presenting(self, on: bool) -> None:
        """On a stage: leave out what nobody there can use, and what is said beside the view in larger type."""

    def spotlight_rect(self) -> QRect:
        """Where what is being chosen at the cursor stands, in the view's own pixels; empty where it is nowhere."""
        return QRect()

    def presentation_caption(self) -> str:
        """Why, in a sentence, of what this view speaks of; empty where it speaks of the token at the cursor."""
        return ""


class ComparisonHooks:
    """A view of runs that go on beside the shown one."""

    @property
    def shows_side_runs(self) -> bool:
        """Whether what is measured now is shown here, its failure too."""
        return False

    def side_runs_changed(self, on: bool) -> None:
        """Runs beside the shown one begin, or have ended."""

    def side_runs_progressed(self, progress: MeasurementProgress) -> None:
        """How far the runs beside the shown one have come."""

    def compare_with(self, run: Run) -> None:
        """A kept run is to be held beside the shown one."""

    def side_run_finished(self, run: Run) -> None:
        """One of the runs beside the shown one has ended."""


class SettingsHooks:
    """A view of what a new run would be."""

    grammar: object = None
    """What its text would be held to; None for nothing."""

    def grammar_changed(self, grammar: object) -> None:
        """A new run would be held to another grammar from now on."""
        self.grammar = grammar


Table = Sequence[Sequence[object]]


class Excerpt(NamedTuple):
    """The words that a view shows, to be taken elsewhere."""

    plain: str
    html: str
    """The same with the colours they are shown in."""


class ViewSignals(QObject):
    """Everything a view may ask for. A view emits what it cares about; all of it is connected, once."""

    tokenActivated = Signal(int)
    """Token i of the shown text was picked."""
    sequenceActivated = Signal(int)
    """Text n is to be the shown one."""
    cursorRequested = Signal(int)
    """The first n tokens (steps of a beam search) are to be drawn."""
    reportSelected = Signal(object)
    """What the inspector is to say (a NodeReport); None: it speaks of tokens again."""
    inspectorRequested = Signal()
    """The inspector is to be seen."""
    sideRunsRequested = Signal(object)
    """These requests are to be run beside the shown run; each answer comes to `View.measured`."""
    stopRequested = Signal()
    """What is under way is to end; what is there stays."""
    samplesRequested = Signal(int)
    """What is set is to be written so many times at once."""
    runActivated = Signal(object)
    """This run, which is there already, is to be shown in all views."""
    prefixSaveRequested = Signal(str)
    """What the run has read is to be written to that file."""
    prefixLoadRequested = Signal(str)
    """A prefix is to be read from that file."""
    branchRequested = Signal(object)
    """A run is to go on from a place of the shown text with something else (an `app.state.branching.TokenReplacement`), or
    from a node of a search's tree (an `Onward`)."""
    wordInputRequested = Signal()
    """Words are to be typed in place of the selected token."""
    fillRequested = Signal(str)
    """There is nothing to see here: what fills the view is to be run (a name of `app.state.empty_view`)."""
    relatedRunRequested = Signal(str)
    """A run of the shown one's family is to be shown, by its id."""
    mediumRequested = Signal(str)
    """How the sound or picture in that file looks is to be found out; the answer comes to `View.medium_known`."""
    newChatRequested = Signal()
    regenerateRequested = Signal()
    editLastRequested = Signal()
    overflowPolicyChosen = Signal(str)
    """What a chat does once it no longer fits: a policy of `app.state.conversation`."""


class View(QFrame, PresentationHooks, ComparisonHooks, SettingsHooks):
    """A view of the run. What is not overridden is of no interest to it; what it wants, it says by `signals`."""

    report: NodeReport | None = None
    """What the inspector says while this view is in front; None where it is to speak of tokens."""
    chooses_sequence = False
    """Whether the reader can choose among several texts in the view itself."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName(name)
        self.signals = ViewSignals(self)

    def header_widget(self) -> QWidget | None:
        """Its tools, for the right end of the tab bar."""
        return None

    def selected_node_menu(self) -> QMenu | None:
        """What can be done with what is picked, as a menu that is not open yet; None where nothing can."""
        return None

    def export_table(self) -> Table:
        """What it shows as a table, a head first; empty where there is none."""
        return ()

    def excerpt(self) -> Excerpt | None:
        """The words it shows; None where it shows none."""
        return None

    def saved_view_state(self) -> object:
        """What the reader has made of it that is nobody else's to know; `restore_view_state` takes it, in the same view made anew
        when the program speaks another language. None where there is nothing."""
        return None

    def restore_view_state(self, state: Any) -> None:
        """Stand as the view stood that `state` comes from; None for one of which nothing is known."""

    def set_theme(self, theme: Theme) -> None:
        """Take other colours and sizes at once."""

    def wording_changed(self) -> None:
        """Say again what is shown: explanations are worded otherwise from now on."""

    def show_run(self, run: Run | None) -> None:
        """Show another run from its beginning; None for an empty page."""

    def events_arrived(self, run: Run, events: Sequence[Event]) -> None:
        """The run has grown, has ended (it has an outcome), or both."""

    def cursor_moved(self, run: Run) -> None:
        """Draw up to the cursor."""

    def selection_changed(self, run: Run) -> None:
        """Another token is selected, or none."""

    def influence_changed(self, influence: InfluenceMap | None) -> None:
        """What of the text the step in question hangs on, or read; None: nothing is asked."""

    def medium_loaded(self, medium: Medium) -> None:
        """A sound or a picture has been read, for whoever shows it."""

    def model_ready(self, info: ModelInfo) -> None:
        """A model is loaded."""

    def models_changed(self, entries: Sequence[ModelEntry]) -> None:
        """These models can be chosen."""

    def family_changed(self, members: Sequence[RunTreeEntry], shown: str) -> None:
        """The family of the shown run, parents before children, and the shown run's id."""

    def set_conversation(self, conversation: Conversation) -> None:
        """This is the chat, from now on."""

    def conversation_changed(self) -> None:
        """A turn came, went or ended."""
