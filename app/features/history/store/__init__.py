"""Run history: an SQLite file that lists saved runs, their recordings, and the recordings of runs in progress."""
