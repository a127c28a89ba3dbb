"""Explain why two runs differ: the first difference of their texts, and its cause by elimination.

What could be the cause is taken in order: prompt, model, precision, cache, program, settings, random numbers, stop
rules, rounding. Recorded scores exclude most of it: if the model's scores at the first differing token are equal, only
settings and random numbers remain; if the final distributions are equal too, only random numbers do. Rounding is
accepted only where the shift of the choice's margin fits the number format and the spread on the common tokens. What
remains undecided is tried out where models are at hand (`part_exchange`), and else left undecided.

Imports no torch unless models are passed.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from decodescope.core import processors
from decodescope.core.checks.arguments import cancel_event_or_new, check_integer
from decodescope.core.differences.compared_run import ComparedRun, read_run
from decodescope.core.differences.differing_parts import (
    SUBJECT_TITLES,
    Part,
    Subject,
    differing_parts,
    has_exact_cache,
    has_other_precision,
    precision_of,
)
from decodescope.core.differences.prompt_difference import PromptDifference, has_known_ids, prompt_difference
from decodescope.core.differences.score_shift import (
    Spread,
    StepShift,
    is_within,
    pairs_of_margins,
    rounding_limit,
    spread_before,
    step_shift,
)
from decodescope.core.events import Ending
from decodescope.core.explain.words import label, quote_both
from decodescope.core.notebook.result_rows import ResultRows
from decodescope.resources.language import join_names, join_sentences, mark, tr, trn

if TYPE_CHECKING:
    from decodescope.core.differences.compared_run import Model, RunLike

Verdict = Literal["equal", "excluded", "cause", "fits", "possible", "unknown"]
"""Of one subject: the same in both runs; different, but not the cause; the cause; as the cause makes it; perhaps the
cause; not known.
"""
Cause = Literal[
    "none", "first_tokens", "template", "white_space", "truncation", "tokenization", "prompt", "media", "model",
    "precision", "cache", "program", "settings", "random_numbers", "stop_rules", "failure", "rounding", "unknown",
]  # fmt: skip
"""`none`: the texts do not differ. `unknown`: the cause is not found. The first seven after `none` are about prompts
(`PromptCause`).
"""
MAX_TRIED_TOKENS = 400
"""Length of the common text up to which parts are exchanged and the runs repeated."""
_MAX_FLIP_PROBABILITY = 0.01
_READING: tuple[Subject, ...] = ("prompt", "model", "precision", "cache", "program")
"""Subjects that change the model's scores."""
_HASHES_WITH_FORMAT = frozenset({"config_hash", "weights_hash"})
"""Hashes that also depend on the number format, of models that were not read from files."""
_SAME_WEIGHTS_FACTOR = 20
"""Fraction of the rounding limit that the spread of the same weights stays below."""
_ROUNDING: tuple[Subject, ...] = ("precision", "program", "cache")
"""Those of them that change it by rounding only (a cache if it is exact)."""


class DifferenceCheck(NamedTuple):
    """One step of the elimination."""

    subject: Subject
    title: str
    verdict: Verdict
    evidence: str


class FirstDifference(NamedTuple):
    """The place where two texts first differ."""

    position: int
    """Index of the first differing token of A: the number of equal ones before it."""
    other_position: int
    """The same in B; another number only where tokens are compared by their text."""
    is_end: bool
    """Whether one text ends here and the other goes on."""
    character: int
    """Number of equal characters before the difference."""
    a: str
    """A's token; empty where its text ends."""
    b: str


class RunDifference(ResultRows[DifferenceCheck]):
    """The steps of the elimination, in order."""

    cause: Cause
    candidates: tuple[Subject, ...]
    """The possible causes, if the cause is not found."""
    parts: tuple[Part, ...]
    """Everything that differs besides the texts and prompts."""
    first: FirstDifference | None
    """None if the texts are equal."""
    written: tuple[str, str]
    shift: StepShift | None
    """Scores at the first differing token; None if they were not recorded."""
    spread: Spread | None
    """Spread on the common tokens."""
    step_spreads: Sequence[tuple[int, float]]
    """(step, largest shift of a margin in nats) of the common tokens."""
    headline: str
    """Where the texts first differ, in one sentence."""
    reason: str
    """The cause and the values that show it; empty without a difference."""
    advice: str
    """What to do for equal texts; empty if there is nothing to do."""

    @property
    def is_equal(self) -> bool:
        """Whether both texts are the same."""
        return self.first is None

    @property
    def sentence(self) -> str:
        """The difference and its cause in sentences."""
        return join_sentences(self.headline, self.reason)

    def columns(self) -> dict[str, list[object]]:
        """Return the table's columns by name."""
        return {
            "subject": [row.title for row in self], "verdict": [verdict_text(row.verdict) for row in self],
            "evidence": [row.evidence for row in self],
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.sentence}>"


def verdict_text(verdict: Verdict) -> str:
    """Return a verdict in words."""
    return {
        "equal": tr("equal"), "excluded": tr("excluded"), "cause": tr("cause"),
        "fits": tr("agrees"), "possible": tr("possible"),
        "unknown": tr("not known"),
    }[verdict]  # fmt: skip


def explain_difference(
    a: RunLike, b: RunLike, *, models: Model | tuple[Model | None, Model | None] | None = None, sequence: int = 0,
    cancel: threading.Event | None = None, progress: Callable[[str], None] | None = None,
) -> RunDifference:  # fmt: skip
    """Return the first difference of two runs and its cause, with the evidence of every step of the elimination.

    A run is a `Result`, a captured run, the events of a run, the path of a recording, or a pair of a model and a
    request, which is run first. `models` are the models of both runs, or one for both: then what the recorded scores
    leave undecided is tried out, by repeating A with single parts of B. `sequence` is the number of the text in runs of
    several. `progress` receives a sentence before each of these runs.

    Raises ParameterError for other values, ComparisonError for runs that did not start, TraceError, and the errors of
    `stream`.
    """
    check_integer("sequence", sequence, 0, 10**6)
    cancel = cancel_event_or_new(cancel)
    pair = models if isinstance(models, tuple) and len(models) == 2 else (models, models)
    first, second = read_run(a, pair[0], sequence), read_run(b, pair[1], sequence)
    return _Elimination(first, second).conclude(cancel, progress or (lambda _sentence: None))


def first_difference(a: ComparedRun, b: ComparedRun) -> FirstDifference | None:
    """Return where two texts first differ; None if they are equal.

    Tokens are compared by id, or by their text if a vocabulary differs or an engine does not report ids.
    """
    if _has_comparable_ids(a, b):
        if a.ids == b.ids:
            return None
        position = _common_length(a.ids, b.ids)
        is_end = position == min(len(a.ids), len(b.ids))
        character = sum(map(len, a.pieces[:position])) if a.pieces else _common_length(a.text, b.text)
        return FirstDifference(position, position, is_end, character, _piece(a, position), _piece(b, position))
    if a.text == b.text:
        return None
    character = _common_length(a.text, b.text)
    is_end = character == min(len(a.text), len(b.text))
    ours, theirs = _token_at(a, character), _token_at(b, character)
    return FirstDifference(ours, theirs, is_end, character, _piece(a, ours), _piece(b, theirs))


def _has_comparable_ids(a: ComparedRun, b: ComparedRun) -> bool:
    if min((*a.ids, *b.ids), default=0) < 0 or a.started.vocabulary != b.started.vocabulary:
        return False
    position = _common_length(a.ids, b.ids)
    whole = max(position - 1, 0)  # the last equal token may begin a character that the next ones complete
    return a.pieces[:whole] == b.pieces[:whole] or not (a.pieces and b.pieces)


def _common_length(a: Sequence[object], b: Sequence[object]) -> int:
    return next((n for n, (one, other) in enumerate(zip(a, b, strict=False)) if one != other), min(len(a), len(b)))


def _token_at(run: ComparedRun, character: int) -> int:
    """Return the index of the token that contains a character of the text."""
    end = 0
    for position, piece in enumerate(run.pieces):
        end += len(piece)
        if end > character:
            return position
    return len(run.pieces)


def _piece(run: ComparedRun, position: int) -> str:
    return run.tokens[position].piece if position < len(run.tokens) else ""


@dataclass(slots=True)
class _Elimination:
    """Examines two runs."""

    a: ComparedRun
    b: ComparedRun
    first: FirstDifference | None = None
    prompts: PromptDifference | None = None
    parts: list[Part] = field(default_factory=list)
    shift: StepShift | None = None
    spread: Spread | None = None
    rows: dict[Subject, tuple[Verdict, str]] = field(default_factory=dict)

    def conclude(self, cancel: threading.Event, progress: Callable[[str], None]) -> RunDifference:
        """Return the result."""
        a, b = self.a, self.b
        self.first = first_difference(a, b)
        self.prompts, self.parts = prompt_difference(a, b), differing_parts(a, b)
        for subject in SUBJECT_TITLES:
            self.rows[subject] = self._compare(subject)
        if self.first is None:
            return self._no_difference()
        if self.first.is_end:
            return self._end_difference()
        if _has_comparable_ids(a, b):
            self.spread = spread_before(a, b, self.first.position)
        self.shift = step_shift(a, b, self.first.position, self.first.other_position)
        self._exclude_by_scores()
        candidates = self._candidates()
        if len(candidates) != 1 and self._can_try():
            return self._try_parts(candidates, cancel, progress)
        return self._name(candidates)

    def _of(self, subject: Subject) -> list[Part]:
        return [part for part in self.parts if part.subject == subject]

    def _compare(self, subject: Subject) -> tuple[Verdict, str]:
        """Return whether a subject is the same in both runs."""
        if subject == "prompt":
            return self._compare_prompts()
        if subject == "rounding":
            return "equal", ""
        if found := self._of(subject):
            return "possible", tr("{parts}.").format(parts="; ".join(part.sentence for part in found))
        return self._equal_text(subject)

    def _compare_prompts(self) -> tuple[Verdict, str]:
        if self.prompts is not None:
            return "possible", self.prompts.sentence
        if not (has_known_ids(self.a) and has_known_ids(self.b)):
            return "unknown", tr("The text is equal, but an engine does not report the tokens that it read.")
        count = len(self.a.started.prompt) + len(self.a.started.beginning)
        return "equal", trn("The same {count} token.", "All {count} tokens are equal.", count).format(count=count)

    def _equal_text(self, subject: Subject) -> tuple[Verdict, str]:
        ours, theirs = self.a.started, self.b.started
        if subject == "model":
            return self._equal_model()
        if subject == "precision":
            if not (precision_of(self.a) and precision_of(self.b)):
                return self._unless_same_engine(tr("An engine does not report the number format of its weights."))
            return "equal", tr("Both are {value}.").format(value=precision_of(self.a))
        if subject == "cache":
            if not (ours.cache and theirs.cache):
                return self._unless_same_engine(tr("An engine does not report its cache."))
            return "equal", tr("Both are {value}.").format(value=ours.cache)
        if subject == "program":
            return "equal", tr("The same program on {device}, one text at a time.").format(device=ours.device)
        if subject == "settings":
            return "equal", tr("No setting that acts on the choice differs.")
        if subject == "stop_rules":
            return "equal", tr("Limits, end tokens and stop strings are equal.")
        if not self.a.is_sampled and not self.b.is_sampled:
            return "equal", tr("Neither run used random numbers.")
        if self.a.is_sampled != self.b.is_sampled:
            return "equal", tr("Only one run used random numbers.")
        return "equal", tr("Both started from the same state.")

    def _unless_same_engine(self, sentence: str) -> tuple[Verdict, str]:
        ours, theirs = self.a.started, self.b.started
        if ours.engine and (ours.engine, ours.device, ours.model) == (theirs.engine, theirs.device, theirs.model):
            return "equal", tr("The same model of the same engine.")
        return "unknown", sentence

    def _equal_model(self) -> tuple[Verdict, str]:
        ours, theirs = self.a.started.identity, self.b.started.identity
        if ours is None or theirs is None or not (ours.weights_hash and theirs.weights_hash):
            sentence = tr("An engine reports only the name of its model: {a} in A, {b} in B.")
            return self._unless_same_engine(sentence.format(a=self.a.started.model, b=self.b.started.model))
        if ours.memory_hash and theirs.memory_hash:
            return "equal", tr("Configuration and weights in memory are equal (hash {hash}).").format(
                hash=ours.memory_hash[:8]
            )
        return "equal", tr("Configuration and list of weights are equal (hash {hash}).").format(
            hash=ours.weights_hash[:8]
        )

    # No difference, or a difference in length

    def _no_difference(self) -> RunDifference:
        for subject, (verdict, evidence) in self.rows.items():
            if verdict == "possible":
                self.rows[subject] = ("excluded", join_sentences(evidence, tr("It did not change this text.")))
        count = len(self.a.ids)
        sentence = trn(
            "There is no difference: the token of both texts is equal.",
            "There is no difference: all {count:,} tokens of both texts are equal.", count,
        ).format(count=count)  # fmt: skip
        return self._result("none", sentence)

    def _end_difference(self) -> RunDifference:
        """Name the reason for which the shorter text ended."""
        first = self.first
        assert first is not None
        lengths = [len(run.ids) if _has_comparable_ids(self.a, self.b) else len(run.text) for run in (self.a, self.b)]
        is_a_shorter = lengths[0] < lengths[1]
        run, name, other = (self.a, "A", "B") if is_a_shorter else (self.b, "B", "A")
        for subject, (verdict, evidence) in self.rows.items():
            if verdict in ("possible", "unknown") and subject != "stop_rules":
                text = tr("It did not change the {count:,} common tokens.").format(count=first.position)
                self.rows[subject] = ("excluded", join_sentences(evidence, text))
        opening = tr("{name} ends after {count:,} tokens, and {other} goes on with the same text before.").format(
            name=name, other=other, count=first.position
        )
        if run.failure:
            self.rows["stop_rules"] = ("excluded", tr("{name} ended with an error.").format(name=name))
            return self._result("failure", opening, run.failure)
        reason = _ending_sentence(run)
        evidence = join_sentences(reason, self.rows["stop_rules"][1] if self._of("stop_rules") else "")
        if run.end is None:
            self.rows["stop_rules"] = ("unknown", reason)
            return self._result("unknown", opening, reason, ("stop_rules",))
        self.rows["stop_rules"] = ("cause", evidence)
        return self._result("stop_rules", opening, evidence)

    # A difference of tokens

    def _exclude_by_scores(self) -> None:
        """Exclude what the recorded scores at the first differing token rule out."""
        shift = self.shift
        self._exclude("stop_rules", tr("Neither text ends before the difference."))
        if self._has_idle_settings():
            self._exclude("settings", tr("None of them acted on this token."))
        if shift is None:
            return
        if shift.has_equal_raw:
            for subject in _READING:
                self._exclude(subject, tr("The model's scores before this token are equal in both runs."))
        if shift.has_equal_final and not self._has_other_rule():
            self._exclude("settings", tr("The probabilities after all settings are equal in both runs."))
        if not self.a.is_sampled and not self.b.is_sampled and not self._has_other_rule():
            if shift.flips_by_reading() is True and shift.flips_by_settings() is False:
                self._exclude("settings", tr("A's settings on B's scores also give B's token."))
            elif shift.flips_by_settings() is True and shift.flips_by_reading() is False:
                for subject in _READING:
                    self._exclude(subject, tr("A's settings on B's scores would still give A's token."))
        if self._of("random_numbers") and shift.flip_probability <= _MAX_FLIP_PROBABILITY:
            share = tr("With equal random numbers, the choice would differ in at most {percent:.2g} % of cases.")
            share = share.format(percent=100 * shift.flip_probability)
            if not self._has_other_rule():
                for subject in (*_READING, "settings"):
                    self._exclude(subject, share)
        self._exclude_by_size(shift)

    def _has_idle_settings(self) -> bool:
        """Return whether the recorded stages show that no differing setting acted on the token."""
        first = self.first
        assert first is not None
        if not (self.a.tokens and self.b.tokens):
            return False
        funnels = self.a.tokens[first.position].funnel, self.b.tokens[first.other_position].funnel
        names = {part.name for part in self._of("settings")}
        active = {stage.name for funnel in funnels for stage in funnel}
        return all(funnels) and names <= processors.registry.keys() and not names & active

    def _exclude_by_size(self, shift: StepShift) -> None:
        """Decide whether rounding explains the shift of the scores, and exclude subjects that only round."""
        if shift.has_equal_raw or math.isnan(shift.shift):
            return
        limit = rounding_limit(precision_of(self.a), precision_of(self.b))
        within = is_within(shift, self.spread, limit)
        if within is False:
            for subject in _ROUNDING:
                if subject != "cache" or (has_exact_cache(self.a) and has_exact_cache(self.b)):
                    self._exclude(subject, tr("Rounding cannot shift the choice this far."))
        if within and self.spread is not None and has_other_precision(self.a, self.b):
            names = {part.name for part in self._of("model")}
            if names <= _HASHES_WITH_FORMAT and self.spread.rms <= limit / _SAME_WEIGHTS_FACTOR:
                self._exclude("model", tr("The scores agree as those of the same weights in other number formats do."))
        if within and self.spread is not None:
            for subject in _READING:
                if self.rows[subject][0] == "unknown":
                    evidence = tr("The scores of the common tokens agree up to rounding.")
                    self.rows[subject] = ("excluded", join_sentences(self.rows[subject][1], evidence))

    def _has_other_rule(self) -> bool:
        """Return whether the runs choose by other rules, such as sampling and the likeliest token."""
        choice = {part.name for part in self._of("settings")} & {"strategy", "do_sample", "num_beams"}
        return bool(choice) or self.a.is_sampled != self.b.is_sampled

    def _exclude(self, subject: Subject, evidence: str) -> None:
        verdict, before = self.rows[subject]
        if verdict in ("possible", "unknown"):
            self.rows[subject] = ("excluded", join_sentences(before, evidence))

    def _candidates(self) -> list[Subject]:
        found: list[Subject] = [subject for subject, (verdict, _) in self.rows.items() if verdict == "possible"]
        if "settings" in found and self._has_other_rule() and "random_numbers" not in found:
            # a run that takes the likeliest token and one that draws: their scores need no other reason
            likeliest = self._is_likeliest_in_both()
            if likeliest:
                found = [subject for subject in found if subject == "settings"]
        return found

    def _is_likeliest_in_both(self) -> bool:
        """Return whether both models rank the token of the greedy run first, so that only drawing explains the rest."""
        if self.shift is None or self.a.is_sampled == self.b.is_sampled or self.first is None:
            return False
        margins = self.shift.final if self.b.is_sampled else (-self.shift.final[0], -self.shift.final[1])
        return min(margins) > 0

    def _name(self, candidates: Sequence[Subject]) -> RunDifference:
        """Return the result for what remains."""
        unknown: list[Subject] = [subject for subject, (verdict, _) in self.rows.items() if verdict == "unknown"]
        if len(candidates) == 1 and not self._is_undecided(candidates[0], unknown):
            return self._name_cause(candidates[0])
        if not candidates and not unknown and self._is_rounding():
            return self._name_cause("rounding")
        remaining = [*candidates, *(subject for subject in unknown if subject not in candidates)]
        return self._cannot_tell(remaining)

    def _is_undecided(self, candidate: Subject, unknown: Sequence[Subject]) -> bool:
        """Return whether a subject that is not known may be the cause as well as the only known difference."""
        if candidate in ("settings", "random_numbers") and self.shift is not None:
            return bool(unknown) and not self._has_other_rule()
        return bool(unknown)

    def _is_rounding(self) -> bool:
        """Return whether equal inputs gave scores that differ as rounding does."""
        if self.shift is None or self.shift.has_equal_raw or self.a.is_sampled != self.b.is_sampled:
            return False
        limit = rounding_limit(precision_of(self.a), precision_of(self.b))
        return is_within(self.shift, self.spread, limit) is True

    def _name_cause(self, subject: Subject) -> RunDifference:
        verdict, evidence = self.rows[subject]
        del verdict
        self.rows[subject] = ("cause", evidence)
        if subject in (*_ROUNDING, "rounding") and self._is_rounding():
            self.rows["rounding"] = ("cause" if subject == "rounding" else "fits", self._margin_text())
        if subject == "prompt":
            assert self.prompts is not None
            return self._result(self.prompts.cause, self._opening(), self.prompts.sentence)
        if subject == "rounding":
            reason = tr("Everything is equal, but the scores differ as rounding makes them differ.")
        elif subject == "random_numbers":
            reason = tr("The random numbers differ.")
        else:
            reason = tr("{title} is the cause.").format(title=SUBJECT_TITLES[subject]())
            if subject == "settings":
                names = join_names(part.title for part in self._of("settings"))
                reason = tr("The settings differ: {names}.").format(names=names)
        details = "" if subject == "rounding" else self.rows[subject][1]
        return self._result(subject, self._opening(), join_sentences(reason, details, self._margin_text()))

    def _cannot_tell(self, remaining: Sequence[Subject]) -> RunDifference:
        if remaining:
            names = join_names(SUBJECT_TITLES[subject]() for subject in remaining)
            reason = tr("The cause cannot be told: what remains is {names}.").format(names=names)
        elif self.shift is None:
            reason = tr("The cause cannot be told: everything recorded is equal, and no scores were recorded.")
        elif self.shift.has_equal_raw:
            reason = tr("The cause cannot be told: everything recorded is equal, also the scores.")
        else:
            reason = tr(
                "The cause cannot be told: everything recorded is equal, but the scores differ further than rounding "
                "explains. The weights in memory or the code of the model may have changed."
            )
        reason = join_sentences(reason, self._margin_text())
        return self._result("unknown", self._opening(), reason, tuple(remaining))

    # Trying out

    def _can_try(self) -> bool:
        from decodescope.core.differences.part_exchange import can_repeat

        assert self.first is not None
        return self.first.position <= MAX_TRIED_TOKENS and can_repeat(self.a, self.b)

    def _try_parts(
        self, candidates: Sequence[Subject], cancel: threading.Event, progress: Callable[[str], None]
    ) -> RunDifference:
        from decodescope.core.differences.part_exchange import PartExchange

        assert self.first is not None
        exchange = PartExchange(self.a, self.b, self.first.position, cancel)
        if (relation := exchange.relation_of_weights()) is not None:
            candidates = self._apply_relation(relation, candidates)
        if len(candidates) == 1:
            return self._name(candidates)
        progress(tr("Repeating A"))
        if not exchange.repeats():
            for subject in candidates:
                self.rows[subject] = (
                    self.rows[subject][0], join_sentences(self.rows[subject][1], tr("A gives another text again."))
                )  # fmt: skip
            return self._name(candidates)
        tried = [subject for subject in candidates if exchange.can_exchange(subject)]
        found: list[Subject] = []
        for subject in tried:
            if cancel.is_set():
                return self._name(candidates)
            progress(tr("Repeating A with B's part: {subject}").format(subject=SUBJECT_TITLES[subject]()))
            if exchange.gives_other_token(subject):
                found.append(subject)
                self._add_evidence(subject, tr("A with only this of B gives B's token."))
            else:
                self._add_evidence(subject, tr("A with only this of B does not give B's token."))
        if len(found) == 1 and len(tried) == len(candidates):
            for subject in tried:
                if subject != found[0]:
                    self.rows[subject] = ("excluded", self.rows[subject][1])
            return self._name_cause(found[0])
        return self._cannot_tell(found or candidates)

    def _add_evidence(self, subject: Subject, evidence: str) -> None:
        verdict, before = self.rows[subject]
        self.rows[subject] = (verdict, join_sentences(before, evidence))

    def _apply_relation(self, relation: str, candidates: Sequence[Subject]) -> list[Subject]:
        """Use the comparison of the weights of both models: `same`, `rounded` or `other`."""
        found = list(candidates)
        if relation in ("same", "rounded"):
            text = tr("The weights in memory are equal.") if relation == "same" else tr(
                "The weights in memory are equal up to the rounding of their number format."
            )  # fmt: skip
            if "model" in found and not any(part.name == "adapters" for part in self._of("model")):
                self._exclude("model", text)
                found.remove("model")
        elif relation == "other":
            text = tr("The weights in memory differ further than rounding explains.")
            self.rows["model"] = ("possible", join_sentences(self.rows["model"][1], text))
            found = [subject for subject in found if subject not in ("precision", "model")]
            self._exclude("precision", text)
            found.insert(0, "model")
        return found

    # Texts

    def _opening(self) -> str:
        first = self.first
        assert first is not None
        if not (first.a and first.b):
            return tr("The texts differ after {count:,} equal characters.").format(count=first.character)
        names = quote_both(first.a, first.b)
        if not first.position:
            return tr("The texts differ from the first token: A writes {name}, B writes {other}.").format(**names)
        return trn(
            "The texts differ after {count:,} equal token: A writes {name}, B writes {other}.",
            "The texts differ after {count:,} equal tokens: A writes {name}, B writes {other}.", first.position,
        ).format(count=first.position, **names)  # fmt: skip

    def _margin_text(self) -> str:
        """Return the margins at the difference, and the spread before it."""
        shift, spread = self.shift, self.spread
        if shift is None or math.isnan(shift.shift):
            return ""
        if shift.has_equal_raw:
            return tr("The model's scores are equal.")
        template = tr("Margin of A's token against B's: {a} nats in A, {b} in B.")
        if shift.is_bound[0]:
            template = tr("Margin of A's token against B's: at least {a} nats in A, {b} in B.")
        text = template.format(a=_signed(shift.raw[0]), b=_signed(shift.raw[1]))
        if spread is None:
            return text
        more = tr("On {steps:,} common tokens, margins differ by {rms:.2g} on average, and at most by {most:.2g}.")
        return join_sentences(text, more.format(steps=spread.steps, rms=spread.rms, most=spread.maximum))

    def _result(
        self, cause: Cause, headline: str, reason: str = "", candidates: tuple[Subject, ...] = ()
    ) -> RunDifference:
        if self.rows["rounding"][1] == "":
            self.rows["rounding"] = self._rounding_row(cause)
        rows = [
            DifferenceCheck(subject, title(), *self.rows[subject]) for subject, title in SUBJECT_TITLES.items()
        ]  # fmt: skip
        found = RunDifference(rows)
        found.cause, found.headline, found.reason, found.candidates = cause, headline, reason, candidates
        found.parts, found.first, found.written = tuple(self.parts), self.first, (self.a.text, self.b.text)
        found.shift, found.spread = self.shift, self.spread
        position = self.first.position if self.first is not None else len(self.a.tokens)
        comparable = _has_comparable_ids(self.a, self.b)
        found.step_spreads = pairs_of_margins(self.a, self.b, position) if comparable else ()
        found.advice = tr(_ADVICE[cause]) if cause in _ADVICE else ""
        return found

    def _rounding_row(self, cause: Cause) -> tuple[Verdict, str]:
        if cause in ("none", "stop_rules", "failure"):
            return "excluded", tr("It did not change the common tokens.")
        if self.shift is None or math.isnan(self.shift.shift):
            return "unknown", tr("The scores of this token were not recorded in both runs.")
        if self.shift.has_equal_raw:
            return "excluded", tr("The model's scores are equal.")
        if cause == "unknown" and self._is_rounding():
            return "possible", self._margin_text()
        return "excluded", self._margin_text()


def _signed(number: float) -> str:
    return f"{number:.3g}".replace("-", "−")


_ENDINGS: dict[Ending, str] = {
    "eos": mark("It wrote an end token that does not end the other text."),
    "length": mark("It reached its limit of new tokens."),
    "context": mark("It reached the maximum length of the model."),
    "time": mark("It reached its time limit."),
    "stop_string": mark("It wrote its stop string {stop}."),
    "stopped": mark("It was stopped."),
    "given": mark("It is a given text."),
    "grammar": mark("Its grammar allows no further token."),
}


def _ending_sentence(run: ComparedRun) -> str:
    if run.end is None:
        return tr("The recording does not contain why it ended.")
    return tr(_ENDINGS[run.end.reason]).format(stop=f"“{label(run.end.stop_string)}”")


_ADVICE: dict[Cause, str] = {
    "first_tokens": mark("Pass the prompt as token ids, or let only one side add the special tokens."),
    "template": mark("Fill in the chat template once, and pass the resulting token ids to both."),
    "white_space": mark("Remove the white space, most often at the end of the prompt."),
    "truncation": mark("Raise the context length of the side that cuts, or shorten the prompt."),
    "tokenization": mark("Pass token ids to both, or use the same tokenizer files."),
    "media": mark("Pass the same files."),
    "model": mark("Load the same files, without adapters or changes in memory."),
    "precision": mark("Load both with weights in the same number format."),
    "cache": mark("Use a cache that keeps all tokens unchanged, such as the dynamic one."),
    "program": mark("Rounding depends on program and device: compare probabilities, not texts."),
    "rounding": mark("Compare probabilities, not texts: two tokens are almost equally likely here."),
    "random_numbers": mark("Use the same seed, device and number of texts for both."),
    "settings": mark("Use the same settings for both."),
    "stop_rules": mark("Use the same limits, end tokens and stop strings."),
}
