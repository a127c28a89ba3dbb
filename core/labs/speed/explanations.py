"""Explain the measurements at three levels of detail: one sentence per technique that is true of its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from decodescope.core.checks.arguments import check_number, check_one_of, check_text
from decodescope.core.explain.sentence import Sentence, SentenceNumber, SentenceTemplate, together
from decodescope.core.labs.arguments import check_lab_object, lab_object_list
from decodescope.core.labs.formatting import decimal_bytes, percent
from decodescope.core.labs.speed.events import Row, RowMeasurement, SpeedReference, Way
from decodescope.resources.language import mark, tr

_MIN_TOKENS_PER_PASS = 1.05
"""Tokens per pass above which drafts are said to help."""
TITLES: dict[Way, str] = {
    "batch": mark("Several texts at once"),
    "weights": mark("Fewer bits per weight"),
    "drafts": mark("Speculative decoding"),
    "offload": mark("Weights on disk"),
    "parallel": mark("Several processes"),
    "compiled": mark("Compiled steps"),
}
_ROW_TITLES: dict[Row, str] = {
    Row("drafts", "plain"): mark("No drafts"),
    Row("drafts", "assisted"): mark("Draft model"),
    Row("drafts", "token_tree"): mark("Token tree"),
    Row("drafts", "prompt_lookup"): mark("Prompt lookup"),
    Row("drafts", "early_exit"): mark("Early exit"),
    Row("offload", "memory"): mark("In memory"),
    Row("offload", "disk"): mark("From disk"),
    Row("offload", "drafted"): mark("Disk with drafts"),
    Row("compiled", "dynamic"): mark("Dynamic cache"),
    Row("compiled", "static"): mark("Static cache"),
    Row("compiled", "compiled"): mark("Static, compiled"),
}


def row_title(row: Row) -> str:
    """Return the label below a row's bar: `8`, `int8`, `Early exit`. Raises ParameterError."""
    check_lab_object("row", row, Row)
    check_text("way", row.way)
    check_text("name", row.name)
    return tr(_ROW_TITLES[row]) if row in _ROW_TITLES else row.name


_REFERENCE = SentenceTemplate(
    mark("{model} must read {bytes} for every word, and this machine reads {bandwidth} per second: word by "
        "word, one text cannot exceed {limit} words per second."),
    mark("For each token {model} reads its {bytes} of weights, and this machine reads {bandwidth} per "
        "second: at most {limit} tokens/s, one at a time."),
    mark("Limit = bandwidth ÷ weight bytes = {bandwidth}/s ÷ {bytes} ({kind}, {threads} threads) = {limit} "
        "tokens/s for each text of a pass."),
)  # fmt: skip
_BATCH = SentenceTemplate(
    mark("With {texts} texts at once, {ratio} times as many words are written per second as with one, and "
        "each text has {share} of its speed alone."),
    mark("{texts} texts at once were fastest: {speed} tokens/s in total, {ratio} × one text. Each text had "
        "{each} tokens/s, {share} of its speed alone."),
    mark("Throughput is highest at batch {texts}: {speed} tokens/s = {ratio} × batch 1; {each} tokens/s per "
        "text ({share} of batch 1), with {bytes} of weights and cache."),
)  # fmt: skip
_NO_BATCH = SentenceTemplate(
    mark("Several texts at once are not clearly faster here than a single one."),
    mark("Several texts at once were not clearly faster here than a single one, which reached {speed} tokens/s."),
    mark("No batch is clearly faster than batch 1, {speed} tokens/s."),
)
_QUANTIZED = SentenceTemplate(
    mark("{best} is fastest, {ratio} times as fast as float32, and uses {share} of its memory."),
    mark("{best} was fastest: {speed} tokens/s, {ratio} × float32, with {share} of its memory."),
    mark("{best}: {speed} tokens/s = {ratio} × float32, {bytes} including its cache ({share} of float32)."),
)
_NOT_QUANTIZED = SentenceTemplate(
    mark("Fewer bits are not clearly faster here, but {smallest} uses only {share} of the memory."),
    mark(
        "Fewer bits were not clearly faster here than float32 with {speed} tokens/s. {smallest} uses {share} of its "
        "memory."
    ),
    mark("No format is clearly faster than float32's {speed} tokens/s; {smallest} uses {bytes}, {share} of float32."),
)
_DRAFTED = SentenceTemplate(
    mark("{best} is fastest: {ratio} times as fast, since one pass of the model yields {passes} words."),
    mark("{best} was fastest: {speed} tokens/s, {ratio} × token by token, with {passes} tokens per pass of the model."),
    mark(
        "{best}: {speed} tokens/s = {ratio} × plain, {passes} tokens per target pass; the limit assumes one per pass."
    ),
)
_NOT_DRAFTED = SentenceTemplate(
    mark("Guessing ahead does not pay off here: the best method, {best}, is {ratio} times as fast as no guessing."),
    mark("Speculative decoding did not pay off here: the best, {best}, reached {ratio} × token by token."),
    mark("No drafter is faster than plain: {best}, {ratio} ×, with {passes} tokens per target pass."),
)
_NOT_CLEARLY_DRAFTED = SentenceTemplate(
    mark(
        "Guessing ahead is not clearly faster here: the best method, {best}, came to {ratio} times the speed without "
        "it, but repeated measurements differ as much."
    ),
    mark(
        "Speculative decoding was not clearly faster here: the best, {best}, reached {ratio} × token by token, and the "
        "repeats of both overlap."
    ),
    mark(
        "No drafter is clearly faster than plain: {best}, {ratio} ×, with {passes} tokens per target pass; the repeats "
        "overlap."
    ),
)
_NOT_BY_DRAFTS = SentenceTemplate(
    mark("{best} was {ratio} times as fast, but not by its guesses: one pass of the model yields {passes} words."),
    mark("{best} reached {ratio} × token by token, but not by its drafts: {passes} tokens per pass of the model."),
    mark("{best}: {ratio} × plain with {passes} tokens per target pass, so the drafts do not explain it."),
)
_SAME_TEXT = SentenceTemplate(
    mark("The words are the same in every case."),
    mark("All wrote the same text."),
    mark("Token ids equal the baseline's in every row."),
)
_DIFFERENT_TEXT = SentenceTemplate(
    mark("{names} wrote other words: if two are almost equally likely, rounding decides."),
    mark("{names} wrote a different text: near ties are decided by the order of summation."),
    mark("Different token ids in {names}: another order of summation decides near ties."),
)
_PARALLEL = SentenceTemplate(
    mark("Each of {count} processes holds only {bytes}; together they are {ratio} times as fast as one."),
    mark("{count} processes hold {bytes} of the weights each, and together are {ratio} × as fast as one."),
    mark("Tensor parallel over {count}: {bytes} of weights on the fullest rank, {speed} tokens/s = {ratio} × one."),
)
_NOT_CLEARLY_PARALLEL = SentenceTemplate(
    mark("That is not clearly different from one process: repeated measurements differ as much."),
    mark("That is not clearly faster than one process: the repeats of both overlap."),
    mark("Not clearly faster than one rank: the repeats overlap."),
)
_COMMUNICATION = SentenceTemplate(
    mark("Sending and waiting cost them more than the smaller parts save."),
    mark("Sending and waiting in every layer cost more than the smaller products save."),
    mark("Two all-reduces per layer, with waiting, cost more here than products of 1/N save."),
)
_COMPILED = SentenceTemplate(
    mark("Compiled for this machine, a step is {ratio} times as fast."),
    mark("The compiled step reached {speed} tokens/s, {ratio} × the usual one."),
    mark("Static cache and compiled step: {speed} tokens/s = {ratio} × dynamic."),
)
_NOT_COMPILED = SentenceTemplate(
    mark("Compiling the step for this machine is not clearly faster here: {ratio} times the usual speed."),
    mark("The compiled step was not clearly faster here: {speed} tokens/s, {ratio} × the usual one."),
    mark("Static cache and compiled step: {speed} tokens/s = {ratio} × dynamic, within the variation or below."),
)
_ON_DISK = SentenceTemplate(
    mark("With {bytes} in memory and the rest read from disk for every word, {speed} words are written per "
        "second; {predicted_speed} were predicted."),
    mark("With {bytes} in memory and the rest read from disk for each pass: {speed} tokens/s, with "
        "{predicted_speed} predicted."),
    mark("{bytes} of weights and cache in memory, the rest read for each pass: {speed} tokens/s; predicted "
        "{predicted_speed} = 1 ÷ (bytes read ÷ disk speed + computing)."),
)  # fmt: skip
_DISK_DRAFTED = SentenceTemplate(
    mark("Guessing ahead makes that {ratio} times as fast, since one read yields {passes} words."),
    mark("Drafts made that {ratio} × as fast, {speed} tokens/s: one read yields {passes} tokens."),
    mark("With drafts: {speed} tokens/s = {ratio} × without, {passes} tokens per target pass."),
)
_DISK_NOT_DRAFTED = SentenceTemplate(
    mark("Guessing ahead does not make that clearly faster: {ratio} times."),
    mark("Drafts did not make that clearly faster: {ratio} ×."),
    mark("With drafts: {ratio} × without, within the variation or below."),
)
_NO_COMPARISON = SentenceTemplate(
    mark("There is nothing to compare here."), mark("There is nothing to compare here."), mark("No rows to compare.")
)


def explain_reference(reference: SpeedReference) -> Sentence:
    """Explain the limit that all rows are compared with. Raises ParameterError."""
    check_lab_object("reference", reference, SpeedReference)
    return _REFERENCE.say(
        model=reference.model,
        bytes=decimal_bytes(reference.weight_bytes),
        bandwidth=decimal_bytes(reference.bandwidth),
        limit=speed_words(reference.bandwidth / reference.weight_bytes),
        kind=reference.weights,
        threads=str(reference.threads),
    )


def explain_way(way: Way, found: Sequence[RowMeasurement]) -> Sentence:
    """Explain the rows of a technique; the first of them is the reference. Raises ParameterError."""
    check_one_of("way", way, _SENTENCES)
    found = lab_object_list("found", found, RowMeasurement)
    if len(found) < 2:
        return _NO_COMPARISON.say()
    return _SENTENCES[way](found)


def speed_words(speed: float) -> SentenceNumber:
    """Format a speed, such as `1,234` or `12.3`. Raises ParameterError."""
    check_number("speed", speed)
    return SentenceNumber(f"{speed:,.0f}" if speed >= 99.5 else f"{speed:.3g}")


def times(ratio: float) -> SentenceNumber:
    """Format a ratio, such as `2.4` or `12`. Raises ParameterError."""
    check_number("ratio", ratio)
    return SentenceNumber(f"{ratio:.0f}" if ratio >= 9.95 else f"{ratio:.2g}" if ratio < 1 else f"{ratio:.1f}")


def is_clearly_faster(measured: RowMeasurement, other: RowMeasurement) -> bool:
    """Return whether every repeat of one was faster than every repeat of its reference, interleaved if available."""
    return min(measured.speeds) > max(measured.against or other.speeds)


def _drafts_accepted(measured: RowMeasurement) -> bool:
    """Return whether enough drafts were accepted to explain a gain."""
    return (measured.per_pass or 1.0) >= _MIN_TOKENS_PER_PASS


def _ratio(measured: RowMeasurement, base: RowMeasurement) -> float:
    """Return the speed relative to the interleaved reference, or else to the first row."""
    return measured.speed / (measured.base or base.speed)


def _values(measured: RowMeasurement, base: RowMeasurement) -> dict[str, str]:
    return {
        "best": row_title(measured.row),
        "speed": speed_words(measured.speed),
        "each": speed_words(measured.each),
        "ratio": times(_ratio(measured, base)),
        "bytes": decimal_bytes(measured.bytes),
        "passes": SentenceNumber(f"{measured.per_pass or 1:.1f}"),
    }


def _explain_batch(rows: Sequence[RowMeasurement]) -> Sentence:
    base, best = rows[0], max(rows, key=lambda one: one.speed)
    if best is base or not is_clearly_faster(best, base):
        return _NO_BATCH.say(**_values(base, base))
    return _BATCH.say(
        **_values(best, base), texts=SentenceNumber(str(best.texts)), share=percent(best.each / base.each)
    )


def _explain_weights(rows: Sequence[RowMeasurement]) -> Sentence:
    base, best = rows[0], max(rows, key=lambda one: _ratio(one, rows[0]))
    if base.row.name != "float32":
        return _NO_COMPARISON.say()
    if best is not base and is_clearly_faster(best, base):
        return _QUANTIZED.words(**_values(best, base), share=percent(best.bytes / base.bytes))
    small = min(rows, key=lambda one: one.bytes)
    values = _values(base, base) | {"bytes": decimal_bytes(small.bytes)}
    return _NOT_QUANTIZED.say(**values, smallest=row_title(small.row), share=percent(small.bytes / base.bytes))


def _explain_drafts(rows: Sequence[RowMeasurement]) -> Sentence:
    base, best = rows[0], max(rows[1:], key=lambda one: (_drafts_accepted(one), _ratio(one, rows[0])))
    if is_clearly_faster(best, base):
        saying = _DRAFTED if _drafts_accepted(best) else _NOT_BY_DRAFTS
    else:
        saying = _NOT_CLEARLY_DRAFTED if _ratio(best, base) > 1 else _NOT_DRAFTED
    return together(saying.say(**_values(best, base)), _explain_equality(rows))


def _explain_equality(rows: Sequence[RowMeasurement]) -> Sentence:
    others = [row_title(one.row) for one in rows if one.same is False]
    if others:
        return _DIFFERENT_TEXT.say(names=tr(", ").join(others))
    return _SAME_TEXT.say() if any(one.same for one in rows) else Sentence()


def _explain_parallel(rows: Sequence[RowMeasurement]) -> Sentence:
    base, fastest = rows[0], max(rows[1:], key=lambda one: one.speed)
    explanation = _PARALLEL.say(**_values(fastest, base), count=fastest.row.name)
    talking = Sentence()
    if not is_clearly_faster(fastest, base):
        talking = (_NOT_CLEARLY_PARALLEL if _ratio(fastest, base) > 1 else _COMMUNICATION).say()
    return together(explanation, talking, _explain_equality(rows))


def _explain_compiled(rows: Sequence[RowMeasurement]) -> Sentence:
    base, last = rows[0], rows[-1]
    if last.row.name != "compiled":
        return _NO_COMPARISON.say()
    saying = _COMPILED if is_clearly_faster(last, base) else _NOT_COMPILED
    return together(saying.say(**_values(last, base)), _explain_equality(rows))


def _explain_offload(rows: Sequence[RowMeasurement]) -> Sentence:
    by_name = {one.row.name: one for one in rows}
    disk, drafted = by_name.get("disk"), by_name.get("drafted")
    if disk is None:
        return _NO_COMPARISON.say()
    explanation = _ON_DISK.say(**_values(disk, disk), predicted_speed=speed_words(disk.predicted or 0.0))
    if drafted is None:
        return together(explanation, _explain_equality(rows))
    saying = _DISK_DRAFTED if _drafts_accepted(drafted) and is_clearly_faster(drafted, disk) else _DISK_NOT_DRAFTED
    return together(explanation, saying.say(**_values(drafted, disk)), _explain_equality(rows))


_SENTENCES: dict[Way, Callable[[Sequence[RowMeasurement]], Sentence]] = {
    "batch": _explain_batch,
    "weights": _explain_weights,
    "drafts": _explain_drafts,
    "offload": _explain_offload,
    "parallel": _explain_parallel,
    "compiled": _explain_compiled,
}
