"""Devices: what this machine has, as probes saw it, and what workers say that they can execute.

Three facts about a device are never merged: present (a probe saw it), reachable (a route to it
exists) and runnable (an attached worker executes something on it). `rows`, `host` and `doctor` are
pure; the other modules read the machine.
"""
