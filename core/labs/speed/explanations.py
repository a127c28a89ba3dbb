"""What the measurement's figures mean, in words of three depths: each way one sentence that is true of its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from core.checks.arguments import check_number, check_one_of, check_text
from core.explain.sentence import Saying, Sentence, SentenceNumber, together
from core.labs.arguments import check_lab_object, lab_object_list
from core.labs.formatting import decimal, percent
from core.labs.speed.events import Ground, Measured, Row, Way
from resources.language import mark, tr

_MIN_TOKENS_PER_PASS = 1.05
"""Tokens a pass, from which on guessing ahead may be said to help."""
TITLES: dict[Way, str] = {
    "batch": mark("Several texts at once"),
    "weights": mark("Weights of fewer bits"),
    "drafts": mark("Guessing ahead"),
    "offload": mark("Weights read from the disk"),
    "parallel": mark("Several processes"),
    "compiled": mark("Compiled steps"),
}
_ROW_TITLES: dict[Row, str] = {
    Row("drafts", "plain"): mark("One by one"),
    Row("drafts", "assisted"): mark("Draft model"),
    Row("drafts", "token_tree"): mark("Token tree"),
    Row("drafts", "prompt_lookup"): mark("Prompt lookup"),
    Row("drafts", "early_exit"): mark("Early exit"),
    Row("offload", "memory"): mark("In memory"),
    Row("offload", "disk"): mark("From the disk"),
    Row("offload", "drafted"): mark("Disk and drafts"),
    Row("compiled", "dynamic"): mark("Dynamic cache"),
    Row("compiled", "static"): mark("Static cache"),
    Row("compiled", "compiled"): mark("Static, compiled"),
}


def row_title(row: Row) -> str:
    """What a row is called below its bar: `8`, `int8`, `Early exit`. Raises ParameterError."""
    check_lab_object("row", row, Row)
    check_text("way", row.way)
    check_text("name", row.name)
    return tr(_ROW_TITLES[row]) if row in _ROW_TITLES else row.name


_GROUND = Saying(
    mark("{model} has {bytes} to read for every word it writes, and this machine reads {bandwidth} in a second: one "
         "text cannot come faster than {limit} words a second, however it is done word by word."),
    mark("For each token {model} reads its {bytes} of weights, and this machine reads {bandwidth} a second: no more "
         "than {limit} tokens/s, one at a time."),
    mark("Limit = bandwidth ÷ bytes of weights = {bandwidth}/s ÷ {bytes} ({kind}, {threads} threads) = {limit} "
         "tokens/s for each text of a pass."),
)  # fmt: skip
_BATCH = Saying(
    mark("With {texts} texts at once, {ratio} times as many words come in a second as with one, and each text gets "
         "{share} of the speed it has alone."),
    mark("Most came with {texts} texts at once: {speed} tokens/s in all, {ratio} × one text alone. Each text had "
         "{each} tokens/s, {share} of its speed alone."),
    mark("Throughput is highest at batch {texts}: {speed} tokens/s = {ratio} × batch 1; a text at {each} tokens/s "
         "({share} of batch 1), in {bytes} of weights and cache."),
)  # fmt: skip
_NO_BATCH = Saying(
    mark("More texts at once brought nothing here: one alone is as quick as it gets."),
    mark("More texts at once brought nothing here: one alone came quickest, at {speed} tokens/s."),
    mark("No batch is clearly above batch 1, {speed} tokens/s."),
)
_QUANTIZED = Saying(
    mark("{best} is quickest, {ratio} times as quick as float32, and takes {share} of its memory."),
    mark("{best} was quickest: {speed} tokens/s, {ratio} × float32, in {share} of its memory."),
    mark("{best}: {speed} tokens/s = {ratio} × float32, {bytes} with its cache ({share} of float32)."),
)
_NOT_QUANTIZED = Saying(
    mark("Fewer bits are not quicker here; {smallest} takes {share} of the memory, though."),
    mark("Fewer bits brought no speed here: float32 had {speed} tokens/s. {smallest} takes {share} of its memory."),
    mark("No kind is clearly above float32's {speed} tokens/s; {smallest} has {bytes}, {share} of float32."),
)
_DRAFTED = Saying(
    mark("{best} is quickest: {ratio} times as quick, since one look of the model settles {passes} words."),
    mark("{best} was quickest: {speed} tokens/s, {ratio} × one by one, at {passes} tokens for each pass of the model."),
    mark("{best}: {speed} tokens/s = {ratio} × plain, {passes} tokens a target pass; the limit counts one a pass."),
)
_NOT_DRAFTED = Saying(
    mark("Guessing ahead is not worth its trouble here: the best of it, {best}, is {ratio} times as quick as none."),
    mark("No guessing ahead paid for itself here: the best, {best}, reached {ratio} × one by one."),
    mark("No drafter is clearly above plain: {best}, {ratio} ×, at {passes} tokens a target pass."),
)
_SAME_TEXT = Saying(
    mark("The words are the same in every case."),
    mark("All of them wrote the same text."),
    mark("Token ids equal those of the plain way in every row."),
)
_DIFFERENT_TEXT = Saying(
    mark("{names} came to other words: where two are nearly alike, rounding decides."),
    mark("{names} wrote another text: near a tie, sums taken in another order decide."),
    mark("Other token ids in {names}: sums in another order, which decide near a tie."),
)
_PARALLEL = Saying(
    mark("Each of {count} processes keeps only {bytes}; they are {ratio} times as quick as one alone."),
    mark("{count} processes keep {bytes} of the weights each, and together are {ratio} × as quick as one."),
    mark("Tensor parallel over {count}: {bytes} of weights on the fullest rank, {speed} tokens/s = {ratio} × one."),
)
_COMMUNICATION = Saying(
    mark("Talking to and waiting for each other costs them more than the smaller shares save."),
    mark("Sending and waiting in every layer costs them more than the smaller products save."),
    mark("Two all-reduces a layer, and waiting for them, cost more here than products of 1/N save."),
)
_COMPILED = Saying(
    mark("Translated for this machine, a step is {ratio} times as quick."),
    mark("The compiled step made {speed} tokens/s, {ratio} × the usual one."),
    mark("Static cache and compiled step: {speed} tokens/s = {ratio} × dynamic."),
)
_NOT_COMPILED = Saying(
    mark("Translating the step for this machine brings nothing here: {ratio} times as quick."),
    mark("The compiled step was not clearly quicker here: {speed} tokens/s, {ratio} × the usual one."),
    mark("Static cache and compiled step: {speed} tokens/s = {ratio} × dynamic, within the spread or below it."),
)
_ON_DISK = Saying(
    mark("With {bytes} of it in memory and the rest read from the disk for every word, {speed} words come in a second; "
         "{foretold} were foretold."),
    mark("With {bytes} in memory and the rest read from the disk for each pass: {speed} tokens/s, where {foretold} "
         "were foretold."),
    mark("{bytes} of weights and cache in memory, the rest read for each pass: {speed} tokens/s; foretold were "
         "{foretold} = 1 ÷ (bytes read ÷ the disk's speed + computing)."),
)  # fmt: skip
_DISK_DRAFTED = Saying(
    mark("Guessing ahead makes that {ratio} times as quick, since one reading settles {passes} words."),
    mark("Drafts made that {ratio} × as quick, {speed} tokens/s: one reading settles {passes} tokens."),
    mark("Drafted: {speed} tokens/s = {ratio} × undrafted, {passes} tokens a target pass."),
)
_DISK_NOT_DRAFTED = Saying(
    mark("Guessing ahead does not make that clearly quicker: {ratio} times."),
    mark("Drafts did not make that clearly quicker: {ratio} ×."),
    mark("Drafted: {ratio} × undrafted, within the spread or below it."),
)
_NO_COMPARISON = Saying(
    mark("There is nothing to compare here."), mark("There is nothing to compare here."), mark("No rows to compare.")
)


def explain_ground(ground: Ground) -> Sentence:
    """The limit that everything stands beside. Raises ParameterError."""
    check_lab_object("ground", ground, Ground)
    return _GROUND.say(
        model=ground.model,
        bytes=decimal(ground.weight_bytes),
        bandwidth=decimal(ground.bandwidth),
        limit=speed_words(ground.bandwidth / ground.weight_bytes),
        kind=ground.weights,
        threads=str(ground.threads),
    )


def explain_way(way: Way, found: Sequence[Measured]) -> Sentence:
    """What the rows of a way show, the first of them being what the others are held against. Raises ParameterError."""
    check_one_of("way", way, _SENTENCES)
    found = lab_object_list("found", found, Measured)
    if len(found) < 2:
        return _NO_COMPARISON.say()
    return _SENTENCES[way](found)


def speed_words(speed: float) -> SentenceNumber:
    """`1,234`, `12.3`. Raises ParameterError."""
    check_number("speed", speed)
    return SentenceNumber(f"{speed:,.0f}" if speed >= 99.5 else f"{speed:.3g}")


def times(ratio: float) -> SentenceNumber:
    """`2.4`, `12`. Raises ParameterError."""
    check_number("ratio", ratio)
    return SentenceNumber(f"{ratio:.0f}" if ratio >= 9.95 else f"{ratio:.2g}" if ratio < 1 else f"{ratio:.1f}")


def is_clearly_faster(one: Measured, other: Measured) -> bool:
    """Whether every repeat of one was quicker than every repeat of the other, taken between them where it was."""
    return min(one.speeds) > max(one.against or other.speeds)


def _drafts_accepted(one: Measured) -> bool:
    """Whether guesses were right often enough for what was gained to be theirs."""
    return (one.per_pass or 1.0) >= _MIN_TOKENS_PER_PASS


def _ratio(one: Measured, base: Measured) -> float:
    """To what was timed beside it, else to the first row."""
    return one.speed / (one.base or base.speed)


def _values(one: Measured, base: Measured) -> dict[str, str]:
    return {
        "best": row_title(one.row),
        "speed": speed_words(one.speed),
        "each": speed_words(one.each),
        "ratio": times(_ratio(one, base)),
        "bytes": decimal(one.bytes),
        "passes": SentenceNumber(f"{one.per_pass or 1:.1f}"),
    }


def _explain_batch(rows: Sequence[Measured]) -> Sentence:
    base, best = rows[0], max(rows, key=lambda one: one.speed)
    if best is base or not is_clearly_faster(best, base):
        return _NO_BATCH.say(**_values(base, base))
    return _BATCH.say(
        **_values(best, base), texts=SentenceNumber(str(best.texts)), share=percent(best.each / base.each)
    )


def _explain_weights(rows: Sequence[Measured]) -> Sentence:
    base, best = rows[0], max(rows, key=lambda one: _ratio(one, rows[0]))
    if base.row.name != "float32":
        return _NO_COMPARISON.say()
    if best is not base and is_clearly_faster(best, base):
        return _QUANTIZED.words(**_values(best, base), share=percent(best.bytes / base.bytes))
    small = min(rows, key=lambda one: one.bytes)
    values = _values(base, base) | {"bytes": decimal(small.bytes)}
    return _NOT_QUANTIZED.say(**values, smallest=row_title(small.row), share=percent(small.bytes / base.bytes))


def _explain_drafts(rows: Sequence[Measured]) -> Sentence:
    base, best = rows[0], max(rows[1:], key=lambda one: (_drafts_accepted(one), _ratio(one, rows[0])))
    saying = _DRAFTED if _drafts_accepted(best) and is_clearly_faster(best, base) else _NOT_DRAFTED
    return together(saying.say(**_values(best, base)), _explain_equality(rows))


def _explain_equality(rows: Sequence[Measured]) -> Sentence:
    others = [row_title(one.row) for one in rows if one.same is False]
    if others:
        return _DIFFERENT_TEXT.say(names=tr(", ").join(others))
    return _SAME_TEXT.say() if any(one.same for one in rows) else Sentence()


def _explain_parallel(rows: Sequence[Measured]) -> Sentence:
    base, most = rows[0], max(rows[1:], key=lambda one: one.speed)
    told = _PARALLEL.say(**_values(most, base), count=most.row.name)
    talking = Sentence() if is_clearly_faster(most, base) else _COMMUNICATION.say()
    return together(told, talking, _explain_equality(rows))


def _explain_compiled(rows: Sequence[Measured]) -> Sentence:
    base, last = rows[0], rows[-1]
    if last.row.name != "compiled":
        return _NO_COMPARISON.say()
    saying = _COMPILED if is_clearly_faster(last, base) else _NOT_COMPILED
    return together(saying.say(**_values(last, base)), _explain_equality(rows))


def _explain_offload(rows: Sequence[Measured]) -> Sentence:
    by_name = {one.row.name: one for one in rows}
    disk, drafted = by_name.get("disk"), by_name.get("drafted")
    if disk is None:
        return _NO_COMPARISON.say()
    told = _ON_DISK.say(**_values(disk, disk), foretold=speed_words(disk.foretold or 0.0))
    if drafted is None:
        return together(told, _explain_equality(rows))
    saying = _DISK_DRAFTED if _drafts_accepted(drafted) and is_clearly_faster(drafted, disk) else _DISK_NOT_DRAFTED
    return together(told, saying.say(**_values(drafted, disk)), _explain_equality(rows))


_SENTENCES: dict[Way, Callable[[Sequence[Measured]], Sentence]] = {
    "batch": _explain_batch,
    "weights": _explain_weights,
    "drafts": _explain_drafts,
    "offload": _explain_offload,
    "parallel": _explain_parallel,
    "compiled": _explain_compiled,
}
