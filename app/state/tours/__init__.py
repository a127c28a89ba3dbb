"""Guided tours: their parts, their files, and sentences built from a run's events."""

from app.state.tours.narration import StepNarration, narrate
from app.state.tours.tour import Tour, TourError, TourSetting, TourStep
from app.state.tours.tour_file import find_tour, load_tours, names_and_titles

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
