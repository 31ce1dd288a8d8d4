"""Who listens at a port of this machine."""

from __future__ import annotations

import psutil


def listener_of(port: int) -> str:
    """The process of this machine that listens at a port, as 'NAME (PID)'; empty where it is not known."""
    try:
        connections = psutil.net_connections("tcp")
    except (psutil.Error, OSError):
        return ""
    pids = [c.pid for c in connections if c.status == psutil.CONN_LISTEN and c.laddr and c.laddr.port == port and c.pid]
    if not pids:
        return ""
    try:
        return f"{psutil.Process(pids[0]).name()} ({pids[0]})"
    except psutil.Error:
        return str(pids[0])
