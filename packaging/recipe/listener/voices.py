"""Who says it: espeak-ng with many accents, voices, speeds and pitches, as samples at 16 kHz."""

from __future__ import annotations

import ctypes
import random
from ctypes.util import find_library
from dataclasses import dataclass, replace
from functools import cache
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

RATE = 16_000  # samples a second
LONGEST = 3.7  # seconds of speech, which leaves room for silence around it
QUICKEST = 260  # words a minute
Sound = NDArray[np.int16]

ACCENTS = ("en-us", "en-us", "en", "en", "en-gb-x-rp", "en-gb-scotland", "en-029")
VARIANTS = (
    "m1 m2 m3 m4 m5 m6 m8 f1 f2 f3 f5 Andrea Annie Gene Lee Mario Michael Mike adam belinda benjamin boris caleb david "
    "ed edward grandma max marcelo norbert pablo paul quincy rob robert sandro shelby steph travis victor zac"
).split()
NEW_VARIANTS = ("m7", "f4", "Alex", "Alicia", "Denis", "linda", "grandpa", "miguel")
NEW_ACCENT = "en-gb-x-gbcwmd"  # the West Midlands: only measured, never trained on


@dataclass(frozen=True)
class Speaker:
    """How espeak-ng speaks: voice and variant, words a minute, pitch (0 to 99), pause between words (10 ms)."""

    voice: str
    rate: int
    pitch: int
    gap: int


def draw_speaker(rng: random.Random, held_out: bool, accent: str | None = None) -> Speaker:
    """A speaker of the wanted split: the held-out ones have voices that are not in the training."""
    variant = rng.choice(NEW_VARIANTS if held_out else VARIANTS)
    voice = f"{accent or rng.choice(ACCENTS)}+{variant}"
    return Speaker(voice, rng.randint(130, 215), rng.randint(25, 75), rng.choice((0, 0, 0, 2, 5)))


@dataclass(frozen=True)
class Moment:
    """From this sample on ``phone`` (espeak-ng's name of it) is heard, of the word at this letter of the text."""

    sample: int
    phone: str
    letter: int


@dataclass(frozen=True)
class Spoken:
    """A spoken sentence and what is heard when."""

    sound: Sound
    moments: tuple[Moment, ...]


class _Name(ctypes.Union):
    _fields_ = [("number", ctypes.c_int), ("name", ctypes.c_char_p), ("string", ctypes.c_char * 8)]


class _SpeechEvent(ctypes.Structure):
    """``espeak_EVENT``: an event that the library reports with the sound."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", _Name),
    ]


class Espeak:
    """The library of espeak-ng within this process: a sentence takes milliseconds, ten times less than its program.

    Constants are those of ``espeak-ng/speak_lib.h``. Raises OSError where the library is not installed.
    """

    SYNCHRONOUS, WHOLE_CLAUSE, PLAIN_UTF8, BY_CHARACTER, TELL_PHONES = 2, 500, 1, 1, 1
    SPEED, PITCH, PAUSE = 1, 3, 7
    NO_MORE, PHONE = 0, 7

    def __init__(self) -> None:
        name = find_library("espeak-ng")
        if name is None:
            raise OSError("espeak-ng is not installed (Debian: apt install espeak-ng)")
        self.library = ctypes.CDLL(name)
        self.rate: int = self.library.espeak_Initialize(self.SYNCHRONOUS, self.WHOLE_CLAUSE, None, self.TELL_PHONES)
        kind = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_SpeechEvent)
        )  # fmt: skip
        self.parts: list[Sound] = []
        self.moments: list[Moment] = []
        self.callback = kind(self._keep)  # the library holds only its address
        self.library.espeak_SetSynthCallback(self.callback)

    def _keep(self, samples: Any, count: int, events: Any) -> int:
        if count > 0:
            self.parts.append(np.ctypeslib.as_array(samples, (count,)).copy())
        for event in takewhile(lambda event: event.type != self.NO_MORE, events):
            if event.type == self.PHONE:
                self.moments.append(Moment(event.sample, event.id.string.decode(), event.text_position - 1))
        return 0

    def speak(self, text: str, speaker: Speaker) -> Spoken:
        """The spoken text at the library's own rate."""
        self.parts.clear()
        self.moments.clear()
        if self.library.espeak_SetVoiceByName(speaker.voice.encode()):
            raise ValueError(f"espeak-ng has no voice {speaker.voice}")
        for setting, value in ((self.SPEED, speaker.rate), (self.PITCH, speaker.pitch), (self.PAUSE, speaker.gap)):
            self.library.espeak_SetParameter(setting, value, 0)
        said = text.encode() + b"\0"
        self.library.espeak_Synth(said, len(said), 0, self.BY_CHARACTER, 0, self.PLAIN_UTF8, None, None)
        return Spoken(np.concatenate(self.parts), tuple(self.moments))


@cache
def espeak() -> Espeak:
    """The one voice box of this process."""
    return Espeak()


def say(text: str, speaker: Speaker) -> Spoken | None:
    """The spoken sentence, mono, 16 bit, 16 kHz; said faster where it would not fit, nothing where it never fits."""
    while True:
        spoken = trimmed(resampled(espeak().speak(text, speaker)))
        excess = len(spoken.sound) / (LONGEST * RATE)
        if excess <= 1:
            return spoken
        if speaker.rate >= QUICKEST:
            return None
        speaker = replace(speaker, rate=min(QUICKEST, int(speaker.rate * max(1.1, excess))))


def resampled(spoken: Spoken) -> Spoken:
    """From espeak-ng's samples a second, 22,050, to 16,000."""
    import soxr

    own = espeak().rate
    sound = soxr.resample(spoken.sound.astype(np.float32), own, RATE).clip(-32768, 32767).astype(np.int16)
    return Spoken(sound, tuple(replace(moment, sample=moment.sample * RATE // own) for moment in spoken.moments))


def trimmed(spoken: Spoken, quiet: int = 60) -> Spoken:
    """Without the silence at both ends."""
    loud = np.flatnonzero(np.abs(spoken.sound) > quiet)
    first, last = (int(loud[0]), int(loud[-1])) if len(loud) else (0, len(spoken.sound) - 1)
    moments = tuple(replace(moment, sample=moment.sample - first) for moment in spoken.moments)
    return Spoken(spoken.sound[first : last + 1], moments)
