"""The bench: what the product costs beside doing the same work without it.

`judging` decides and has no clock, no process and no file; `running` starts processes and writes
files; `arms` is what runs inside the processes that are compared; `suite` has one module for each
benchmark. docs/methodology.md says how and why.
"""
