"""Search of saved runs while typing, and the first page of the list."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

from decodescope.app.features.history.store.history_record import HistoryRecord, SavedRunData
from decodescope.app.features.history.store.history_store import HistoryStore
from tests.benchmarks.timing import percentile, seconds

RUNS, WORDS = 5000, 300
QUERIES = ("d", "dr", "dra", "dragon", "dragon fire", "th", "the", "the hill", "nowhere", "猫", "her", "fire o")
_SYLLABLES = ("dra", "gon", "fi", "re", "the", "hill", "o", "ver", "her", "lit", "tle", "fox", "ri", "mo", "un", "sa")


def filled(folder: Path, runs: int) -> HistoryStore:
    """A history of stories of made-up words."""
    rng = random.Random(7)
    vocabulary = ["".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4))) for _ in range(4000)]
    store = HistoryStore(folder)
    for number in range(runs):
        text = " ".join(rng.choices(vocabulary, k=WORDS))
        record = HistoryRecord(f"{number:032x}", float(number), text[:60], text[60:200], "storyteller", "sampling")
        store.save(SavedRunData(record, text, {"prompt": text[:60]}))
    return store


def measure(quick: bool = False) -> dict[str, float]:
    """Milliseconds (lower is better)."""
    with tempfile.TemporaryDirectory() as folder:
        store = filled(Path(folder), RUNS)
        times = [seconds(lambda q=query: store.ids(q)) for query in QUERIES for _ in range(3 if quick else 9)]
        store.close()
    return {"searching 5,000 kept runs p95 (ms)": percentile(times, 0.95) * 1000}
