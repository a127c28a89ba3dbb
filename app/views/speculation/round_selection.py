"""Which round of a run is shown: the newest at the cursor, until the reader picks another. No Qt in here."""

from __future__ import annotations

from app.state.rounds import DraftRounds
from app.state.run import Run
from app.views.speculation.round_report import drafter_names
from app.views.text.token_wording import token_text
from core.events import DraftRound
from resources.language import tr

_NO_ROUNDS = DraftRounds()


class RoundSelection:
    """A run and the number of one of its rounds; -1 where none has begun."""

    def __init__(self) -> None:
        self.begin(None)

    def begin(self, run: Run | None) -> None:
        """Another run, from its beginning; None: there is no run."""
        self.run = run
        self.number = -1
        self._follows_newest = True

    @property
    def rounds(self) -> DraftRounds:
        """All rounds of the run so far."""
        return self.run.rounds if self.run is not None else _NO_ROUNDS

    @property
    def count(self) -> int:
        """Rounds that had begun at the cursor."""
        return self.rounds.count_started(self.run.cursor) if self.run is not None else 0

    @property
    def entry(self) -> DraftRound | None:
        """The round that is shown."""
        return self.rounds.rounds[self.number] if 0 <= self.number < len(self.rounds) else None

    def update(self, run: Run, follow_newest: bool = False) -> None:
        """The run has grown, or its cursor moved; `follow_newest`: the newest round is followed again."""
        self.run = run
        self._follows_newest = self._follows_newest or follow_newest
        last = self.count - 1
        self.number = last if self._follows_newest else min(self.number, last)

    def pick(self, number: int) -> None:
        """Show that round; the last one is followed from then on."""
        self._follows_newest = number == self.count - 1
        self.number = number

    def neighbour(self, offset: int) -> int:
        """The round so many further on, or back, as far as there are any."""
        return min(max(0, self.number + offset), self.count - 1)

    def show_token(self, token: int | None) -> bool:
        """Show the round that wrote a token; False where that changes nothing."""
        number = self.rounds.round_of(token) if token is not None else None
        if number is None or number == self.number or number >= self.count:
            return False
        self._follows_newest, self.number = False, number
        return True

    @property
    def drafters(self) -> tuple[str, ...]:
        """Names of the run's drafters."""
        return drafter_names(self.run.request) if self.run is not None else ()

    @property
    def word_before(self) -> str:
        """The last token before the round, as the root of its tree."""
        run, step = self.run, self.entry.step if self.entry is not None else 0
        if run is None:
            return "…"
        if step and step <= len(run.tokens):
            return f"…{token_text(run.tokens[step - 1].piece, run.tokens[step - 1].is_special)}"
        return f"…{token_text(run.before[-1].text, run.before[-1].special)}" if run.before else tr("start")
