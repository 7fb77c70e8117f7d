"""Supervision: when a lost worker is started again, when it is given up, and what ends it.

`policy` decides and is pure; the other modules watch and act.
"""
