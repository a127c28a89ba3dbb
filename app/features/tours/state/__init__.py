"""Guided tours: their parts, their files, and sentences built from a run's events."""

from decodescope.app.features.tours.state.narration import GuessResult, StepNarration, evaluate_guess, narrate
from decodescope.app.features.tours.state.tour import Lesson, LessonGuess, Tour, TourError, TourSetting, TourStep
from decodescope.app.features.tours.state.tour_file import (
    find_lesson,
    find_tour,
    load_lessons,
    load_tours,
    names_and_titles,
)

__all__ = [
    "GuessResult",
    "Lesson",
    "LessonGuess",
    "StepNarration",
    "Tour",
    "TourError",
    "TourSetting",
    "TourStep",
    "evaluate_guess",
    "find_lesson",
    "find_tour",
    "load_lessons",
    "load_tours",
    "names_and_titles",
    "narrate",
]
