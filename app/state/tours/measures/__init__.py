"""Named measures: each takes one figure of one or two runs, from their events alone.

`MEASURES` has them all by name; a tour's file names them. A measure of texts and tokens stands in `tokens`, of searches
in `beams`, of drafts in `drafts`, of the cache in `memory`, of two runs side by side in `pairs`.
"""

from app.state.tours.measures import beams, drafts, memory, pairs, tokens
from app.state.tours.measures.measure import MEASURES, TourMeasure

__all__ = ["MEASURES", "TourMeasure", "beams", "drafts", "memory", "pairs", "tokens"]
