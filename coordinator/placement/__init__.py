"""Placement: decides which stage runs on which worker and device, and says why. Pure.

`search` decides, `requirement` is what it is asked, `refusal` is how it says no.
"""
