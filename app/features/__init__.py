"""Features whose parts belong to several layers: a folder each.

A folder contains up to six roles, from top to bottom: `controller`, `panel`, `view`, `session` and `store`, `state`. No
import goes upwards, and no shared layer imports a feature.
"""
