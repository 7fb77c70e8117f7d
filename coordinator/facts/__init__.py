"""What the whole coordinator speaks of: ids, sizes, grades, verdicts; nothing that acts."""
