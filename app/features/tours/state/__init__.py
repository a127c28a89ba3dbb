"""Guided tours: their parts, their files, and sentences built from a run's events."""

from decodescope.app.features.tours.state.narration import StepNarration, narrate
from decodescope.app.features.tours.state.tour import Tour, TourError, TourSetting, TourStep
from decodescope.app.features.tours.state.tour_file import find_tour, load_tours, names_and_titles

__all__ = [
    "StepNarration",
    "Tour",
    "TourError",
    "TourSetting",
    "TourStep",
    "find_tour",
    "load_tours",
    "names_and_titles",
    "narrate",
]
