"""The automatic draft length: draft a token only while it is likely to earn more time than it costs.

The verify-cost curve of this machine, the time of a draft pass and the running acceptance (of drafted tokens by the
probability their drafter gave them) price every further token; the pace to beat is what the run reaches now. When no
length beats plain decoding, drafting pauses, for longer after every attempt in vain.
"""

from __future__ import annotations

from dataclasses import replace

from core.decoding.speculation.acceptance_stats import INITIAL_PAUSE, AcceptanceStats, clipped_average
from core.decoding.speculation.cost_gate import TRIAL_LENGTH, SpeedupGate
from core.decoding.speculation.length_schedule import RoundResult
from core.decoding.speculation.round_plan import DraftGate
from core.decoding.speculation.verify_cost import VerifyCost

_LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16)
_MAX_LENGTH = 16
_MAX_LENGTH_ON_DISK = 48
"""Where layers are read from the disk, a pass costs so much more than a drafted token that long drafts pay."""
_MIN_SPEEDUP = 1.02
"""Drafting has to promise this much more than plain decoding."""
_MAX_PAUSE = 128
_EXPLORE_INTERVAL = 50
"""Every so many rounds a draft is tried that does not seem worth it, lest a wrong opinion last for ever."""
_OVERHEAD = 0.05
"""Of a target pass, what a round costs besides its passes, where times are reckoned."""


class AutoLength:
    """The `auto` schedule."""

    def __init__(
        self, cost: VerifyCost, memory: dict[str, AcceptanceStats], key: str, draft_cost: float | None = None,
        on_disk: bool = False,
    ) -> None:  # fmt: skip
        """`memory` keeps under `key` what is learnt for later runs; `on_disk`: the target's layers are read from there.

        `draft_cost`, the cost of a draft pass ÷ that of the target's, makes it a steady one, for sampling: lengths
        decide which die falls on which token, so they must not follow the clock, nor what earlier runs saw, if the
        same request and seed are to give the same tokens. Times are then reckoned.
        """
        self._draft_cost = draft_cost
        self._cost = cost if draft_cost is None else cost.rounded
        self._stats: AcceptanceStats = (
            memory.setdefault(key, AcceptanceStats()) if draft_cost is None else AcceptanceStats()
        )
        self._stats.single_pass_seconds = self._stats.single_pass_seconds or cost.single_pass_seconds
        self._max_length = _MAX_LENGTH_ON_DISK if on_disk else _MAX_LENGTH
        self._ratios = [(length, self._cost.ratio(length + 1)) for length in _LENGTHS]
        self._pause_left = self._rounds = 0
        self._is_cold = draft_cost is None
        """Before the first round, which reads the prompt; reckoned times are never cold."""
        self._gate = SpeedupGate(self._stats, cost, draft_cost, self._max_length)
        self.gate: DraftGate | None = self._gate

    def length(self) -> int:
        """The longest draft while drafting pays, 0 in a pause."""
        self._rounds += 1
        self._gate.is_exploring = self._rounds % _EXPLORE_INTERVAL == 0
        if self._pause_left > 0:
            self._pause_left -= 1
            return 0
        self._gate.is_trial = not self._pays_off()
        if not self._gate.is_trial:
            return self._max_length
        known = self._stats
        self._pause_left, known.pause_steps = known.pause_steps, min(known.pause_steps * 2, _MAX_PAUSE)
        known.decay()
        return TRIAL_LENGTH

    def remaining_pause(self) -> int:
        """What is left of the present one."""
        return self._pause_left

    def consume_pause(self, steps: int) -> None:
        """They count as rounds, as any other."""
        self._rounds += steps
        self._pause_left -= steps

    def update(self, outcome: RoundResult) -> None:
        """Acceptance by probability, the pace, and what passes cost."""
        known = self._stats
        known.update_acceptance(outcome)
        timed = outcome if self._draft_cost is None else self._with_modelled_times(outcome, self._draft_cost)
        known.update_costs(timed, self._gate.single_pass_seconds * self._cost.ratio(len(outcome.tree)), self._is_cold)
        self._is_cold = False
        if outcome.verified.path and self._pays_off():
            self._pause_left = 0
            if known.tokens_per_second is not None:
                known.pause_steps = INITIAL_PAUSE

    def update_plain(self, seconds: float, writing: float) -> None:
        """What a pass over one token costs, and what its writing."""
        if self._draft_cost is None:
            self._stats.single_pass_seconds = clipped_average(self._stats.single_pass_seconds, seconds)
            self._stats.emit_seconds = clipped_average(self._stats.emit_seconds, writing)

    def _with_modelled_times(self, outcome: RoundResult, share: float) -> RoundResult:
        """The round with the times it should take."""
        step, verify = (
            share * self._gate.single_pass_seconds,
            self._gate.single_pass_seconds * self._cost.ratio(len(outcome.tree)),
        )
        return replace(
            outcome, draft_seconds=(outcome.passes + 1) * step, first_token_seconds=2 * step, verify_seconds=verify,
            overhead_seconds=_OVERHEAD * self._gate.single_pass_seconds,
        )  # fmt: skip

    def _pays_off(self) -> bool:
        """Whether some length promises more tokens a second than plain decoding, and the latest rounds had them."""
        if (
            self._stats.tokens_per_second is not None
            and self._stats.tokens_per_second * self._gate.single_pass_seconds < _MIN_SPEEDUP
        ):
            return False
        beta, once = self._stats.acceptance, self._gate.first_token_seconds + self._gate.overhead_seconds
        one, step = self._gate.single_pass_seconds, self._gate.draft_pass_seconds
        return any(
            expected_tokens(beta, length) / (ratio * one + once + (length - 1) * step) * one > _MIN_SPEEDUP
            for length, ratio in self._ratios
        )


def expected_tokens(beta: float, length: float) -> float:
    """(1 − β^(γ+1)) / (1 − β): tokens a target pass yields at acceptance β and draft length γ."""
    return length + 1.0 if beta >= 1 else (1 - beta ** (length + 1)) / (1 - beta)


def expected_speedup(beta: float, length: float, cost: float) -> float:
    """(1 − β^(γ+1)) / ((1 − β)(γc + 1)), c = time of a draft token ÷ time of a target pass."""
    return expected_tokens(beta, length) / (length * cost + 1)
