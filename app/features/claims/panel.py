"""The window of claim cards: a list of claims, and the selected one with its test on the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from PySide6.QtCore import Qt, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices, QResizeEvent
from PySide6.QtWidgets import (
    QDialogButtonBox,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from decodescope.app.features.claims.view import ClaimDelegate, ExampleRow, IntervalShape, VerdictCard
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import inherit_theme
from decodescope.app.widgets.accessibility.accessible_widget import announce
from decodescope.app.widgets.building import STRETCH, Gap, arrange, set_up
from decodescope.app.widgets.buttons import MenuButton
from decodescope.app.widgets.dialog import BaseDialog
from decodescope.app.widgets.flow_layout import clear_layout
from decodescope.app.widgets.labels import WrappedLabel
from decodescope.app.widgets.plain_text import PlainLabel, as_plain_text, caption, tooltip
from decodescope.core import claims
from decodescope.core.claims import ClaimEntry, ClaimOutcome
from decodescope.resources import depth
from decodescope.resources.language import mark, tr

SIZE = (1080, 740)
LIST_WIDTH = 300
"""Width of the list in pixels at 100 %."""
LIST_SHARE = 0.36
"""Largest part of the window's width for the list."""
_EXPECTATIONS = {
    "higher": mark("Claimed: higher by at least {margin}"),
    "lower": mark("Claimed: lower by at least {margin}"),
    "equal": mark("Claimed: equal within ± {margin}"),
}
_NAME = Qt.ItemDataRole.UserRole


class ClaimDialog(BaseDialog):
    """Window of the claim cards; not modal, deleted on close.

    `selected(name)`: another claim is shown. `tryRequested(name)`, `stopRequested`: buttons.
    `exampleRequested(name, example, is tested)`: the run of an example is to be shown. `pageRequested`,
    `copyRequested`: save or copy the shown result; `tableRequested`: save all results of the model.
    """

    selected = Signal(str)
    tryRequested = Signal(str)
    stopRequested = Signal()
    exampleRequested = Signal(str, object, bool)
    pageRequested = Signal()
    tableRequested = Signal()
    copyRequested = Signal()

    def __init__(self, entries: Mapping[str, ClaimEntry], parent: QWidget | None = None) -> None:
        super().__init__(parent, "claimCards", tr("Claim cards: what papers say, tested on this model"))
        self._entries = entries
        self._is_running = False
        self.field = set_up(QLineEdit(self), name="claimField", accessible_name=tr("Find a claim"))
        self.field.setPlaceholderText(tr("A strategy, a setting or a word"))
        self.field.setClearButtonEnabled(True)
        self.list = set_up(QListWidget(self), name="claimList", accessible_name=tr("Claims"))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setWordWrap(True)
        self.list.setTextElideMode(Qt.TextElideMode.ElideNone)
        self.list.setSpacing(1)
        self.list.setMouseTracking(True)
        self._delegate = ClaimDelegate(self.list)
        self.list.setItemDelegate(self._delegate)
        self.no_matches = set_up(WrappedLabel(tr("No matches. Try a shorter search."), self), role="muted")
        self.no_matches.hide()
        for entry in entries.values():
            item = QListWidgetItem()
            item.setData(_NAME, entry.name)
            self.list.addItem(item)
        self.card = ClaimCard(self)
        self.export_button = MenuButton(
            "claimExport", tr("Export"), tr("Save or copy results"),
            ((tr("This result as web page (HTML)…"), self.pageRequested.emit),
             (tr("All results of this model as table (CSV)…"), self.tableRequested.emit),
             (tr("Copy this result"), self.copyRequested.emit)), self,
        )  # fmt: skip
        self._lay_out()
        self.field.textChanged.connect(self._search)
        self.list.currentItemChanged.connect(self._on_selected)
        self.card.try_button.clicked.connect(self._on_try)
        self.card.stop_button.clicked.connect(self.stopRequested)
        self.card.exampleRequested.connect(self._on_example)

    @property
    def current(self) -> str:
        """Name of the shown claim; empty for none."""
        row = self.list.currentRow()
        return str(self.list.item(row).data(_NAME)) if row >= 0 else ""

    def show_claim(self, name: str) -> None:
        """Select a claim, the first one for an empty name."""
        self.field.clear()
        names = [self.list.item(row).data(_NAME) for row in range(self.list.count())]
        self.list.setCurrentRow(names.index(name) if name in names else 0)

    def enable_export(self, has_result: bool, has_any: bool) -> None:
        """Offer what can be exported: the shown result, and results of other claims."""
        page, table, copy = self.export_button.menu().actions()
        page.setEnabled(has_result)
        copy.setEnabled(has_result)
        table.setEnabled(has_any)
        self.export_button.setEnabled(has_any)

    def show_verdicts(self, find: Callable[[str], ClaimOutcome | None]) -> None:
        """Show in the list which claims were tested on the selected model."""
        for row in range(self.list.count()):
            item = self.list.item(row)
            entry = self._entries[item.data(_NAME)]
            outcome = find(entry.name)
            verdict = claims.verdict_title(outcome.verdict) if outcome is not None else tr("Not tested")
            below = tr("{subject} · {verdict}").format(subject=entry.subject, verdict=verdict)
            item.setText(as_plain_text(f"{tr(entry.claim.title)}\n{below}"))

    @Slot()
    def wording_changed(self) -> None:
        """Update the texts after a change of the explanation level."""
        if self.current:
            self.card.show_statement(self._entries[self.current])

    def restyle(self, theme: Theme) -> None:
        """Set the width of the list."""
        self._delegate.theme = theme
        self._set_list_width(theme)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Leave most of a narrow window to the claim."""
        super().resizeEvent(event)
        self._set_list_width(self.current_theme)

    def _set_list_width(self, theme: Theme) -> None:
        width = min(theme.px(LIST_WIDTH), round(LIST_SHARE * self.width()))
        for part in (self.list, self.field, self.no_matches):
            part.setFixedWidth(width)
        self.list.scheduleDelayedItemsLayout()

    def tab_panels(self) -> Sequence[QWidget]:
        """Tab goes from the list to the selected claim."""
        return self.field, self.list, self.card, self.export_button, self._buttons

    def _lay_out(self) -> None:
        self._buttons = buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.button(QDialogButtonBox.StandardButton.Close).setAutoDefault(False)
        buttons.rejected.connect(self.close)
        left = arrange(QVBoxLayout(), self.field, (self.list, 1), self.no_matches, spacing=8)
        both = arrange(QHBoxLayout(), left, (self.card, 1), spacing=20)
        foot = arrange(QHBoxLayout(), self.export_button, STRETCH, buttons)
        arrange(QVBoxLayout(self), (both, 1), foot, margins=(20, 16, 20, 16), spacing=12)
        self.resize(*SIZE)

    @Slot(str)
    def _search(self, text: str) -> None:
        words, first = text.casefold().split(), -1
        for row in range(self.list.count()):
            item = self.list.item(row)
            entry = self._entries[item.data(_NAME)]
            claim = entry.claim
            where = " ".join((item.text(), entry.name, entry.entry, tr(claim.plain), tr(claim.exact), claim.source))
            item.setHidden(not all(word in where.casefold() for word in words))
            if first < 0 and not item.isHidden():
                first = row
        self.no_matches.setVisible(first < 0)
        row = self.list.currentRow()
        if first >= 0 and (row < 0 or self.list.item(row).isHidden()):
            self.list.setCurrentRow(first)

    @Slot()
    def _on_selected(self) -> None:
        if self.current:
            self.card.show_statement(self._entries[self.current])
            self.selected.emit(self.current)

    @Slot()
    def _on_try(self) -> None:
        if self.current:
            self.tryRequested.emit(self.current)

    @Slot(object, bool)
    def _on_example(self, example: object, is_tested: bool) -> None:
        self.exampleRequested.emit(self.current, example, is_tested)


class ClaimCard(QScrollArea):
    """One claim: statement, source, comparison, test, verdict and examples. `exampleRequested(example, is tested)`."""

    exampleRequested = Signal(object, bool)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(tr("The claim"))
        self._entry: ClaimEntry | None = None
        self._page = page = QWidget(self)
        self.title = set_up(WrappedLabel("", page), role="title", name="claimTitle")
        self.statement = set_up(WrappedLabel("", page), name="claimStatement")
        self.source = set_up(WrappedLabel("", page), role="muted")
        self.link = set_up(QPushButton(caption(tr("Open the source")), page), clicked=self._open_source)
        self.comparison = WrappedLabel("", page)
        self.measure = set_up(WrappedLabel("", page), role="muted")
        self.try_button = set_up(
            QPushButton(caption(tr("Try it on this model")), page), name="claimTry", role="primary"
        )
        self.stop_button = set_up(QPushButton(caption(tr("Stop")), page), name="claimStop")
        self.bar = set_up(QProgressBar(page, textVisible=False), accessible_name=tr("Progress"))
        for button in (self.link, self.try_button, self.stop_button):
            button.setAutoDefault(False)
        self.status = set_up(WrappedLabel("", page), name="claimStatus", role="muted")
        self.card = VerdictCard(page)
        self.bundled = set_up(WrappedLabel("", page), name="claimBundled", role="muted")
        self.examples_heading = set_up(PlainLabel(tr("EXAMPLES"), page), role="heading")
        self.examples = QVBoxLayout()
        self.examples.setSpacing(18)
        self.bar.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        column = QVBoxLayout(page)
        arrange(
            column, self.title, Gap(4), self.statement,
            self.source, Gap(2), (self.link, 0, Qt.AlignmentFlag.AlignLeft), Gap(10),
            self._heading(page, tr("THE TEST")), self.comparison, self.measure, Gap(6),
            arrange(QHBoxLayout(), self.try_button, self.stop_button, (self.bar, 1), STRETCH, spacing=10), self.status,
            Gap(6), self.card, self.bundled, Gap(6), self.examples_heading, self.examples, STRETCH,
            margins=(0, 0, 10, 0), spacing=6,
        )  # fmt: skip
        self.setWidget(page)
        self.show_progress(None)

    @staticmethod
    def _heading(page: QWidget, text: str) -> PlainLabel:
        return set_up(PlainLabel(text, page), role="heading")

    def show_statement(self, entry: ClaimEntry) -> None:
        """Show what is claimed, by whom, and how it is tested."""
        self._entry, claim = entry, entry.claim
        measure = claims.measure_of(claim)
        self.title.setText(tr(claim.title))
        exact = depth.current_depth() == depth.EXACT
        both = f"{tr(claim.plain)}\n{tr(claim.exact)}"
        plain_only = depth.current_depth() == depth.PLAIN
        self.statement.setText(tr(claim.plain) if plain_only else tr(claim.exact) if exact else both)
        self.source.setText(claim.source)
        self.link.setToolTip(tooltip(claim.address))
        self.link.setAccessibleDescription(claim.address)
        self.comparison.setText(
            tr("“{tested}” against “{baseline}”. {expectation}.").format(
                tested=tr(claim.tested.title), baseline=tr(claim.baseline.title),
                expectation=tr(_EXPECTATIONS[claim.expects]).format(margin=claims.number(claim.margin, measure.digits)),
            )
        )  # fmt: skip
        self.measure.setText(tr("{measure}: {help}").format(measure=tr(measure.title), help=tr(measure.help)))

    def show_progress(self, progress: claims.ClaimProgress | None, is_waiting: bool = False) -> None:
        """Show how far the test is; None without a progress, `is_waiting` while the model is loading."""
        is_running = progress is not None or is_waiting
        self.try_button.setVisible(not is_running)
        self.stop_button.setVisible(is_running)
        self.bar.setVisible(is_running)
        self.bar.setRange(0, progress.total if progress is not None else 0)
        if progress is not None:
            self.bar.setValue(progress.done)
            self.show_status(
                tr("{done} of {total} prompts, up to {seconds:.0f} s left").format(
                    done=progress.done, total=progress.total, seconds=progress.seconds_left
                )
            )
        elif is_waiting:
            self.show_status(tr("Waiting for the model …"))

    def show_status(self, text: str, role: str = "muted", is_announced: bool = False) -> None:
        """Show a line below the buttons; `role` is muted or danger."""
        self.status.setText(text)
        self.status.setVisible(bool(text))
        if self.status.property("role") != role:
            self.status.setProperty("role", role)
            self.status.style().unpolish(self.status)
            self.status.style().polish(self.status)
        if is_announced:
            announce(self, text)

    def show_outcome(self, outcome: ClaimOutcome | None, bundled: str = "", is_final: bool = True) -> None:
        """Show a verdict with its examples; without one only `bundled`, what the bundled model shows. `is_final`:
        whether the test is over.
        """
        self.card.setVisible(outcome is not None)
        self.bundled.setText(bundled)
        self.bundled.setVisible(bool(bundled))
        entry = self._entry
        if outcome is not None and entry is not None:
            self._show_verdict(outcome, entry, is_final)
        self._show_examples(outcome)

    def _show_verdict(self, outcome: ClaimOutcome, entry: ClaimEntry, is_final: bool) -> None:
        claim, card = entry.claim, self.card
        measure = claims.measure_of(claim)
        verdict = claims.verdict_title(outcome.verdict)
        card.verdict.setText(verdict if is_final else tr("So far: {verdict}").format(verdict=verdict))
        card.model.setText(tr("{model}, {date}").format(model=outcome.model, date=outcome.date))
        card.reason.setText(claims.verdict_reason(outcome, claim, measure))
        text = claims.values_text(outcome, claim, measure)
        shape = claim_shape(outcome, claim.expects, measure.digits)
        card.picture.show_shape(shape, text)
        card.legend.setVisible(shape is not None)
        card.values.setText(text)
        card.amount.setText(claims.amount_text(outcome))

    def _show_examples(self, outcome: ClaimOutcome | None) -> None:
        clear_layout(self.examples)
        examples: Sequence[claims.ClaimExample] = outcome.examples if outcome is not None else ()
        entry = self._entry
        self.examples_heading.setVisible(bool(examples))
        if entry is None:
            return
        claim, measure = entry.claim, claims.measure_of(entry.claim)
        for example in examples:
            values = tuple(
                tr("{measure} {value}").format(measure=tr(measure.title), value=claims.number(one, measure.digits))
                for one in (example.baseline_value, example.tested_value)
            )
            titles = (tr(claim.baseline.title), tr(claim.tested.title))
            row = ExampleRow(example, titles, (values[0], values[1]), self._page)
            row.requested.connect(self.exampleRequested)
            self.examples.addWidget(row)
            row.show()
            inherit_theme(row)

    @Slot()
    def _open_source(self) -> None:
        if self._entry is not None:
            QDesktopServices.openUrl(QUrl(self._entry.claim.address))


def claim_shape(outcome: ClaimOutcome, expects: str, digits: int) -> IntervalShape | None:
    """Return what the picture of an outcome shows; None without an interval."""
    if outcome.difference is None or outcome.low is None or outcome.high is None:
        return None
    margin = outcome.margin
    claimed = {"higher": (margin, None), "lower": (None, -margin), "equal": (-margin, margin)}[expects]
    return IntervalShape(outcome.difference, outcome.low, outcome.high, claimed, digits, outcome.verdict)
