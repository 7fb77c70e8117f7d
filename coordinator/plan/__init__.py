"""The plan: schema, loading with line and column, graphs of its pipelines, JSON Schema."""
