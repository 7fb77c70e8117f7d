"""The listener that workers dial: Attach and Exchange, incarnations, fencing, heartbeats."""
