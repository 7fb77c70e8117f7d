"""The coordinator: reads a plan, places its stages, runs its workers and streams tensors."""
