"""Running requests: graph, items, credit, deadlines, cancellation."""
