"""The composition root: brings a plan up and down in order."""
