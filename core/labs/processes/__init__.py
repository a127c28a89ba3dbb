"""Processes that labs start on this machine; none of them outlives its parent.

`lab_processes` starts, monitors and ends them, runs their jobs and encodes their messages, without torch. `distributed`
connects them in a process group, shares a model among them, and counts the bytes of their shards.
"""
