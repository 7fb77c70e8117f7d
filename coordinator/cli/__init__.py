"""The commands. They decide nothing: they read options, call the rest, and show what came out."""
