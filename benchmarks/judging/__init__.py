"""What decides: figures, verdicts, bands, proofs and pages. Same input, same answer."""
