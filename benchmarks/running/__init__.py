"""What acts: processes, the lock, the look at the machine, files."""
