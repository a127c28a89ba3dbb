"""Processes that labs start on this machine, and that never outlive whoever started them.

`starting` starts, hears and ends them; `serving` is what runs in each; `lines` is what they say to each other;
`machine` is what they take of this machine. None of these imports torch.

In a process: they meet by `together`, share a model by `tensor_parallel`, and `held` counts bytes.
"""
