"""The runs that a window has shown, in order, and the current one. No Qt in here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from decodescope.app.state.run import Run
from decodescope.core import cut_short, strategies, words
from decodescope.resources.language import tr

MAX_RUNS_IN_MEMORY = 6
"""Number of complete runs kept in memory; others are loaded from their recordings, if they were saved."""


class NavigationHistory:
    """Navigation through shown runs. A new or opened run always becomes the last one, so that going back loses
    nothing.
    """

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.index = -1
        """Index of the shown run; −1 while there is none."""
        self._runs_in_memory: dict[str, Run] = {}

    @property
    def shown(self) -> str | None:
        """Id of the shown run."""
        return self.ids[self.index] if self.index >= 0 else None

    def show(self, run: Run) -> None:
        """Set the shown run."""
        self._runs_in_memory.pop(run.id, None)
        self._runs_in_memory[run.id] = run
        while len(self._runs_in_memory) > MAX_RUNS_IN_MEMORY:
            del self._runs_in_memory[next(iter(self._runs_in_memory))]
        if run.id != self.shown:
            self.ids = [one for one in self.ids if one != run.id] + [run.id]
            self.index = len(self.ids) - 1

    def insert_first(self, run: str) -> None:
        """Insert an earlier run before all others, so that going back from the first one leads to it."""
        self.ids.insert(0, run)
        self.index += 1

    def run_in_memory(self, run: str) -> Run | None:
        """Return the run if it is still in memory."""
        return self._runs_in_memory.get(run)

    def neighbour(self, step: int) -> str | None:
        """Return the run `step` places after the shown one (before, if negative), if it exists."""
        place = self.index + step
        return self.ids[place] if 0 <= place < len(self.ids) else None

    def go(self, run: str) -> None:
        """Make one of these runs the shown one."""
        self.index = self.ids.index(run)

    def remove(self, deleted: Collection[str]) -> None:
        """Remove deleted runs; the shown one stays."""
        shown = self.shown
        self.ids = [run for run in self.ids if run not in deleted or run == shown]
        self.index = self.ids.index(shown) if shown is not None else -1
        self._runs_in_memory = {run: held for run, held in self._runs_in_memory.items() if run in self.ids}


MAX_EXCERPT_LENGTH = 48
"""Length of the excerpt that represents a text, in characters."""


class RunTreeEntry(NamedTuple):
    """A run in a tree of branches."""

    id: str
    parent: str
    """The run it branched from; empty for a root."""
    shared_tokens: int
    """Number of the answer's tokens shared with the parent."""
    excerpt: str
    """The text at the branch point; for a root, the beginning of its text."""
    strategy: str
    tokens: int
    """Number of tokens it generated itself, or of scored tokens."""
    text: str
    """Its full text, from the beginning of the answer."""
    is_scored: bool = False

    @property
    def summary(self) -> str:
        """`Greedy · 60 tokens`."""
        entry = strategies.registry.get(self.strategy)
        how = tr("Scored") if self.is_scored else tr(entry.title) if entry is not None else self.strategy
        return f"{how} · {words.count(self.tokens, 'token')}"


class RunTrees:
    """All known runs by id; trees are found through their parents."""

    def __init__(self) -> None:
        self._members: dict[str, RunTreeEntry] = {}
        self.runs_in_memory: dict[str, Run] = {}
        """Complete runs in memory."""

    def __contains__(self, run: str) -> bool:
        return run in self._members

    def add(self, entry: RunTreeEntry) -> None:
        """Add or update a run."""
        self._members[entry.id] = entry

    def tree_of(self, run: str) -> list[RunTreeEntry]:
        """Return the tree that contains a run, in order of arrival; empty for an unknown run."""
        if run not in self._members:
            return []
        root = self._root(run)
        return [member for member in self._members.values() if self._root(member.id) == root]

    def _root(self, run: str) -> str:
        seen = {run}
        while (parent := self._members[run].parent) in self._members and parent not in seen:
            run = parent
            seen.add(run)
        return run


def parents_first(members: Sequence[RunTreeEntry]) -> list[RunTreeEntry]:
    """Return parents before their children, whatever order they arrived in."""
    known, done = {member.id for member in members}, dict[str, RunTreeEntry]()
    waiting = list(members)
    while waiting:
        ready = [member for member in waiting if member.parent in done or member.parent not in known]
        if not ready:
            break  # a cycle; no run of this program creates one
        done |= {member.id: member for member in ready}
        waiting = [member for member in waiting if member.id not in done]
    return list(done.values())


def make_entry(run: Run) -> RunTreeEntry:
    """Return the tree entry of a run."""
    request = run.request
    instead = "".join(token.text or token.piece for token in run.beginning[request.shared_tokens :])
    text = instead if request.is_branch else run.text.strip()
    return RunTreeEntry(
        run.id, request.parent, request.shared_tokens, _short(text), request.strategy, len(run.tokens), run.text,
        run.is_scored,
    )  # fmt: skip


def _short(text: str) -> str:
    return cut_short(" ".join(text.split()), MAX_EXCERPT_LENGTH)
