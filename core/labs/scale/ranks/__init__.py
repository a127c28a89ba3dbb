"""Real runs of the Scale lab: processes on this machine train one model together, and every byte is counted.

`run_measurement` starts, monitors and ends them without torch; `rank` runs in each.
"""
