"""How much is read of sound and pictures; nothing is imported to tell it."""

MOST_BYTES = 128 * 2**20
"""A file may have: ten minutes of sound as a CD has it, or any photograph."""
MOST_SECONDS = 600
"""Of one sound. Models take less: Whisper hears 30 seconds."""
MAX_SAMPLE_RATE = 768_000
"""Samples a second: four times what studios record with."""
MAX_CHANNELS = 64
MAX_SAMPLES = 256_000_000
"""Samples of all channels together: ten minutes of stereo at 192,000 a second. A small file may hold more."""
MOST_PIXELS = 64_000_000
"""Of one picture, unpacked: 192 MB. A small file may claim to be a picture of terabytes."""
