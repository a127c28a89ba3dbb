"""Processes of gloo that report what their sockets really send, by the kernel's counters (Linux)."""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress
from typing import Any

_TCP_INFO, _SIZE, _BYTES_SENT_AT = 11, 232, 200
"""Option of a socket, size of `struct tcp_info`, and offset of its `tcpi_bytes_sent` (linux/tcp.h)."""


def sent_bytes() -> int:
    """Return the bytes that all TCP sockets of this process have sent."""
    total = 0
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if os.readlink(f"/proc/self/fd/{number}").startswith("socket:"):
                with socket.socket(fileno=os.dup(int(number))) as opened:
                    info = opened.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _SIZE)
                    total += struct.unpack_from("Q", info, _BYTES_SENT_AT)[0] if len(info) >= _BYTES_SENT_AT + 8 else 0
    return total


def count_socket_bytes(rank: int, count: int, elements: int, port: int, found: Any) -> None:
    """Run collectives as one of `count` processes, and put (kind, rank, bytes sent) for each into `found`."""
    import torch
    import torch.distributed as dist

    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    dist.init_process_group("gloo", rank=rank, world_size=count)
    whole, part = torch.zeros(elements), torch.zeros(elements // count)
    for kind in ("all_reduce", "all_gather"):
        dist.barrier()
        before = sent_bytes()
        if kind == "all_reduce":
            dist.all_reduce(whole)
        else:
            dist.all_gather_into_tensor(whole, part)
        found.put((kind, rank, sent_bytes() - before))
    dist.barrier()
    dist.destroy_process_group()
