"""The automatic draft length: draft a token only while it is likely to earn more time than it costs.

The verify-cost curve of this machine, the time of a draft pass and the running acceptance (of drafted tokens by the
probability their drafter gave them) price every further token; the pace to beat is what the run reaches now. When no
length beats plain decoding, drafting pauses, for longer after every attempt in vain.
"""

from __future__ import annotations

from dataclasses import replace

from core.decoding.speculation.acceptance_stats import FIRST_PAUSE, AcceptanceStats, blend
from core.decoding.speculation.cost_gate import TRIAL, SpeedupGate
from core.decoding.speculation.length_schedule import RoundResult
from core.decoding.speculation.round_plan import DraftGate
from core.decoding.speculation.verify_cost import VerifyCost

_LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16)
_LONGEST = 16
_LONGEST_ON_DISK = 48
"""Where layers are read from the disk, a pass costs so much more than a drafted token that long drafts pay."""
_MARGIN = 1.02
"""Drafting has to promise this much more than plain decoding."""
_LONGEST_PAUSE = 128
_EXPLORES = 50
"""Every so many rounds a draft is tried that does not seem worth it, lest a wrong opinion last for ever."""
_OVERHEAD = 0.05
"""Of a target pass, what a round costs besides its passes, where times are reckoned."""


class AutoLength:
    """The `auto` schedule."""

    def __init__(
        self, cost: VerifyCost, memory: dict[str, AcceptanceStats], key: str, draft_share: float | None = None,
        on_disk: bool = False,
    ) -> None:  # fmt: skip
        """`memory` keeps under `key` what is learnt for later runs; `on_disk`: the target's layers are read from there.

        `draft_share`, the cost of a draft pass ÷ that of the target's, makes it a steady one, for sampling: lengths
        decide which die falls on which token, so they must not follow the clock, nor what earlier runs saw, if the
        same request and seed are to give the same tokens. Times are then reckoned.
        """
        self._share = draft_share
        self._cost = cost if draft_share is None else cost.rounded
        self._known: AcceptanceStats = (
            memory.setdefault(key, AcceptanceStats()) if draft_share is None else AcceptanceStats()
        )
        self._known.verify_one = self._known.verify_one or cost.one
        self._longest = _LONGEST_ON_DISK if on_disk else _LONGEST
        self._ratios = [(length, self._cost.ratio(length + 1)) for length in _LENGTHS]
        self._left = self._rounds = 0
        self._is_cold = draft_share is None
        """Before the first round, which reads the prompt; reckoned times are never cold."""
        self._worth = SpeedupGate(self._known, cost, draft_share, self._longest)
        self.gate: DraftGate | None = self._worth

    def length(self) -> int:
        """The longest draft while drafting pays, 0 in a pause."""
        self._rounds += 1
        self._worth.explores = self._rounds % _EXPLORES == 0
        if self._left > 0:
            self._left -= 1
            return 0
        self._worth.tries = not self._pays()
        if not self._worth.tries:
            return self._longest
        known = self._known
        self._left, known.pause = known.pause, min(known.pause * 2, _LONGEST_PAUSE)
        known.fade()
        return TRIAL

    def pause(self) -> int:
        """What is left of the present one."""
        return self._left

    def rest(self, steps: int) -> None:
        """They count as rounds, as any other."""
        self._rounds += steps
        self._left -= steps

    def learn(self, outcome: RoundResult) -> None:
        """Acceptance by probability, the pace, and what passes cost."""
        known = self._known
        known.see(outcome)
        timed = outcome if self._share is None else self._reckoned(outcome, self._share)
        known.spend(timed, self._worth.one * self._cost.ratio(len(outcome.tree)), self._is_cold)
        self._is_cold = False
        if outcome.verdict.path and self._pays():
            self._left = 0
            if known.pace is not None:
                known.pause = FIRST_PAUSE

    def learn_plain(self, seconds: float, writing: float) -> None:
        """What a pass over one token costs, and what its writing."""
        if self._share is None:
            self._known.verify_one = blend(self._known.verify_one, seconds)
            self._known.writing = blend(self._known.writing, writing)

    def _reckoned(self, outcome: RoundResult, share: float) -> RoundResult:
        """The round with the times it should take."""
        step, verify = share * self._worth.one, self._worth.one * self._cost.ratio(len(outcome.tree))
        return replace(
            outcome, draft_seconds=(outcome.passes + 1) * step, first_seconds=2 * step, verify_seconds=verify,
            extra_seconds=_OVERHEAD * self._worth.one,
        )  # fmt: skip

    def _pays(self) -> bool:
        """Whether some length promises more tokens a second than plain decoding, and the latest rounds had them."""
        if self._known.pace is not None and self._known.pace * self._worth.one < _MARGIN:
            return False
        beta, once = self._known.acceptance, self._worth.draft_first + self._worth.extra
        one, step = self._worth.one, self._worth.draft_step
        return any(
            expected_tokens(beta, length) / (ratio * one + once + (length - 1) * step) * one > _MARGIN
            for length, ratio in self._ratios
        )


def expected_tokens(beta: float, length: float) -> float:
    """(1 − β^(γ+1)) / (1 − β): tokens a target pass yields at acceptance β and draft length γ."""
    return length + 1.0 if beta >= 1 else (1 - beta ** (length + 1)) / (1 - beta)


def expected_speedup(beta: float, length: float, cost: float) -> float:
    """(1 − β^(γ+1)) / ((1 − β)(γc + 1)), c = time of a draft token ÷ time of a target pass."""
    return expected_tokens(beta, length) / (length * cost + 1)
