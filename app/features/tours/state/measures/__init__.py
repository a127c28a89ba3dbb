"""Named measures for tours: each computes one number from the events of one or two runs.

`MEASURES` contains all of them by name; tour files refer to these names. Measures of texts and tokens are in `tokens`,
of beams and drafts in `search`, of the cache and of two runs in `memory`.
"""

from decodescope.app.features.tours.state.measures import memory, search, tokens
from decodescope.app.features.tours.state.measures.measure import MEASURES, TourMeasure

__all__ = ["MEASURES", "TourMeasure", "memory", "search", "tokens"]
