"""The lab for real: processes on this machine that train one model together, measured byte by byte.

`measuring` starts, watches and ends them and needs no torch; `rank` is what runs in each.
"""
