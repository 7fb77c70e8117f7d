"""What the whole coordinator speaks of: ids, byte sizes, grades, verdicts. Dataclasses and enums, nothing else."""
