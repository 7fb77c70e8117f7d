"""Generated messages and service stubs of the wire; see protos/stagewire/v1."""
