"""The account of memory: pools, the tree of constraints on them, reservations, budgets.

The only owner of the answer "does it fit". Values come in: it reads no file and has no clock. It is
not safe to use from several threads, on purpose: one event loop owns it, each call is one step.
"""
