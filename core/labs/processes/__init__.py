"""Processes that labs start on this machine, and that never outlive whoever started them.

`starting` starts, hears and ends them; `serving` is what runs in each; `lines` is what they say to each other;
`machine` is what they take of this machine; `held` counts bytes in them. None but the last imports torch.
"""
