"""Named measures: each takes one figure of one or two runs, from their events alone.

`MEASURES` has them all by name; a tour's file names them. Measures of texts and tokens are in `tokens`, of beams and
drafts in `search`, of the cache and of two runs side by side in `memory`.
"""

from app.state.tours.measures import memory, search, tokens
from app.state.tours.measures.measure import MEASURES, TourMeasure

__all__ = ["MEASURES", "TourMeasure", "memory", "search", "tokens"]
