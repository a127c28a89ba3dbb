"""Cards below a round: the cost and gain of the draft, acceptance by position, draft lengths, verification cost."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from decodescope.app.state.draft_rounds import DraftRounds
from decodescope.app.theme.theme import Theme
from decodescope.app.theme.themed import Themed
from decodescope.app.views.speculation.round_report import speed_rows
from decodescope.app.widgets.building import STRETCH, Gap, arrange, set_up
from decodescope.app.widgets.plain_text import PlainLabel
from decodescope.app.widgets.plots import PlotAxis, PlotBars, PlotLine, PlotPanel, PlotSpec
from decodescope.core import words
from decodescope.core.events import DraftRound, Finished
from decodescope.resources.language import mark, tr, trc


def format_ratio(ratio: float) -> str:
    """Format a ratio for an axis: `×1.5`."""
    return f"×{ratio:g}"


def acceptance_by_position(rounds: DraftRounds) -> PlotSpec:
    """Return the acceptance rate at each position of the draft."""
    acceptance = rounds.acceptance_by_depth()
    tips = tuple(
        tr("position {depth} of the draft: {share} accepted").format(
            depth=depth, share=words.percent(share, is_exact=True)
        )
        for depth, share in acceptance
    )
    bars = PlotBars("", "accent", tuple(share for _, share in acceptance), tooltips=tips)
    places = PlotAxis(tr("position"), labels=tuple(str(depth) for depth, _ in acceptance))
    return PlotSpec(places, PlotAxis(tr("accepted"), words.whole_percent), bars=(bars,), top=1.0)


def length_by_round(rounds: Sequence[DraftRound], chosen: int) -> PlotSpec:
    """Return the drafted tokens of each round: accepted ones, the others (with the colours of the strip and its
    legend), and how many were allowed. Drafts that branch count as long as their deepest token.
    """
    accepted = tuple(float(len(entry.accepted)) for entry in rounds)
    drafted = tuple(float(max((node.depth for node in entry.nodes), default=0)) for entry in rounds)
    rest = tuple(max(0.0, all_of - taken) for all_of, taken in zip(drafted, accepted, strict=True))
    tips = tuple(_round_tip(number, entry) for number, entry in enumerate(rounds, 1))
    labels = tuple(str(number) for number in range(1, len(rounds) + 1))
    bars = (
        PlotBars(tr("accepted"), "kept", accepted, tooltips=tips, marked=chosen),
        PlotBars(tr("not accepted"), "pruned", rest, tooltips=("",) * len(tips), marked=chosen),
    )
    limits = tuple(
        point for n, entry in enumerate(rounds) for point in ((n - 0.5, entry.length), (n + 0.5, entry.length))
    )
    line = PlotLine(tr("limit"), "muted", limits, (3.0, 2.0), shows_on_hover=False)
    return PlotSpec(
        PlotAxis(tr("round"), labels=labels), PlotAxis(tr("tokens"), integers_only=True), bars=bars,
        lines=(line,) if limits else (), is_stacked=True,
    )  # fmt: skip


def _round_tip(number: int, entry: DraftRound) -> str:
    return tr(
        "round {number}: {drafted} drafted of at most {length}, {accepted} accepted\n{drafting:.1f} ms drafting, "
        "{checking:.1f} ms verification"
    ).format(
        number=number,
        drafted=max((node.depth for node in entry.nodes), default=0),
        length=entry.length,
        accepted=len(entry.accepted),
        drafting=entry.draft_seconds * 1000,
        checking=entry.verify_seconds * 1000,
    )


def verification_cost(curve: Sequence[tuple[int, float]]) -> PlotSpec:
    """Return the cost of one pass over several tokens; the line is the cost of one token."""
    tips = tuple(
        tr("{size} at once cost {ratio:.2f} times as much as one").format(size=size, ratio=ratio)
        for size, ratio in curve
    )
    bars = (PlotBars("", "accent", tuple(ratio for _, ratio in curve), tooltips=tips),) if curve else ()
    level = (
        (PlotLine("", "muted", ((-0.5, 1.0), (len(curve) - 0.5, 1.0)), (4.0, 3.0), shows_on_hover=False),)
        if curve
        else ()
    )
    sizes = PlotAxis(tr("tokens at once"), labels=tuple(str(size) for size, _ in curve))
    return PlotSpec(sizes, PlotAxis(tr("cost"), format_ratio), lines=level, bars=bars)


_CHART_SIZE, _MIN_CHART_SIZE, _MAX_CHART_HEIGHT = (180, 96), (100, 96), 280
"""Preferred, smallest and largest size of a chart in pixels at 100 %."""
_SIDE_MARGIN, _NARROW_SIDE_MARGIN = 16, 6
"""Side margins in pixels at 100 %: normal, and in a narrow view."""
_MEASURE = mark("Measure both")


class SpeculationCards(Themed, QWidget):
    """Small cards in one row, or two by two, without empty cells; `roundPicked(n)`: a round was clicked in a chart."""

    measureWanted = Signal()
    roundPicked = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._drafted: Finished | None = None
        self._plain: Finished | None = None
        self._measured_drafted: Finished | None = None
        """Metrics of the run with its draft, measured like the plain run."""
        self._grid = QGridLayout()
        self._cells: list[list[QLabel]] = []
        self._button = QPushButton(tr(_MEASURE), self)
        self._button.setObjectName("measurePlain")
        self._button.setToolTip(tr("Run this prompt twice more: without the draft, then with it"))
        self._button.clicked.connect(self.measureWanted)
        self.positions = _small_plot(tr("Acceptance by position in the draft"), self)
        self.lengths = _small_plot(tr("Draft length by round"), self)
        self.costs = _small_plot(tr("Cost of verifying several tokens at once"), self)
        self.lengths.picked.connect(self.roundPicked)
        self._cards: list[QWidget] = []
        self._card_grid = QGridLayout(self)
        self._arrangement = (0, 0)
        """Number of cards per row, and of all cards."""
        self._add_card(tr("Was it worth it?"), self._make_table())
        self._add_card(tr("Acceptance rate"), self.positions)
        self._add_card(tr("Draft length"), self.lengths)
        self._cost = self._add_card(tr("Verification cost"), self.costs)
        self._cost.hide()  # known only at the end of a run, and never in reproducible pictures
        self._arrange()
        self._update_speed_table()

    def _add_card(self, title: str, part: QWidget) -> QWidget:
        heading = set_up(PlainLabel(title.upper(), self), role="heading")
        heading.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        card = QWidget(self)
        arrange(QVBoxLayout(card), heading, (part, 1), margins=0, spacing=4).addStretch(0)
        self._cards.append(card)
        return card

    def _arrange(self) -> None:
        """Arrange the cards in as few rows of equal length as their widths allow."""
        cards = [card for card in self._cards if not card.isHidden()]
        across = next((n for n in (len(cards), 2, 1) if self._width_of(cards, n) <= self.width()), 1)
        fits = self._width_of(cards, 1) <= self.width()
        side = self._theme.px(_SIDE_MARGIN if fits else _NARROW_SIDE_MARGIN)
        self._card_grid.setContentsMargins(side, self._theme.px(8), side, self._theme.px(8))
        if (across, len(cards)) == self._arrangement:
            return
        self._arrangement = across, len(cards)
        for number, card in enumerate(cards):
            self._card_grid.addWidget(card, number // across, number % across)
        for column in range(len(self._cards)):
            self._card_grid.setColumnStretch(column, 0 if column >= across or (column == 0 and across > 2) else 1)
        self.updateGeometry()

    def _width_of(self, cards: Sequence[QWidget], across: int, side: int = _SIDE_MARGIN) -> int:
        """Return the width in pixels that the cards need, `across` in a row, with their margins."""
        columns = (cards[start::across] for start in range(min(across, len(cards))))
        widths = [max(card.minimumSizeHint().width() for card in column) for column in columns]
        return sum(widths) + (len(widths) - 1) * self._card_grid.horizontalSpacing() + 2 * self._theme.px(side)

    def minimumSizeHint(self) -> QSize:
        """Return the width of the widest card: the cards can be in one column."""
        return QSize(self._width_of(self._cards, 1, _NARROW_SIDE_MARGIN), super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _make_table(self) -> QWidget:
        table = QWidget(self)
        outer = arrange(QVBoxLayout(table), margins=0)
        self._grid.setColumnStretch(0, 1)
        for row, texts in enumerate([("", trc("speed", "plain"), trc("speed", "drafted")), *speed_rows(None, None)]):
            cells: list[QLabel] = [PlainLabel(text, table) for text in texts]
            for column, label in enumerate(cells):
                label.setAlignment(Qt.AlignmentFlag.AlignRight if column else Qt.AlignmentFlag.AlignLeft)
                label.setProperty("role", "muted" if row == 0 or column == 0 else "")
                self._grid.addWidget(label, row, column)
            self._cells.append(cells)
        arrange(outer, self._grid, Gap(6), (self._button, 0, Qt.AlignmentFlag.AlignLeft), STRETCH)
        return table

    def restyle(self, theme: Theme) -> None:
        self._card_grid.setHorizontalSpacing(theme.px(18))
        self._card_grid.setVerticalSpacing(theme.px(12))
        self._arrange()
        self._grid.setVerticalSpacing(theme.px(1))
        self._grid.setHorizontalSpacing(theme.px(10))
        for chart in (self.positions, self.lengths, self.costs):
            chart.set_theme(theme)
            chart.setMaximumHeight(theme.px(_MAX_CHART_HEIGHT))
        for label in (label for cells in self._cells for label in cells):
            label.setFont(theme.font(12, tabular=True))

    def clear(self) -> None:
        """Clear the figures for another run."""
        self._drafted = self._plain = self._measured_drafted = None
        self._update_speed_table()

    def show_rounds(self, rounds: DraftRounds, shown: int, chosen: int, finished: Finished | None) -> None:
        """Draw the charts for the first `shown` rounds."""
        self._drafted = finished
        self._update_speed_table()
        self.positions.show_figure(acceptance_by_position(rounds))
        self.lengths.show_figure(length_by_round(rounds.rounds[:shown], chosen))
        self.costs.show_figure(verification_cost(rounds.curve))
        self._cost.setHidden(not rounds.curve)
        self._arrange()

    def show_plain(self, plain: Finished | None) -> None:
        """Show the figures measured without a draft."""
        self._plain = plain
        self._update_speed_table()

    def show_drafted(self, drafted: Finished | None) -> None:
        """Show the figures measured with the draft, replacing those of the shown run."""
        self._measured_drafted = drafted
        self._update_speed_table()

    def set_measuring(self, on: bool) -> None:
        """Disable the button while the comparison is running."""
        self._button.setEnabled(not on)
        self._button.setText(tr("Measuring…") if on else tr(_MEASURE))

    def _update_speed_table(self) -> None:
        for cells, texts in zip(
            self._cells[1:], speed_rows(self._measured_drafted or self._drafted, self._plain), strict=True
        ):
            for label, text in zip(cells, texts, strict=True):
                label.setText(text)
        self._button.setEnabled(self._drafted is not None)


def _small_plot(name: str, parent: QWidget) -> PlotPanel:
    """Return a small plot."""
    return PlotPanel(name, parent, size=_CHART_SIZE, min_size=_MIN_CHART_SIZE)
