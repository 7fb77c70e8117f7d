"""What tests of running coordinators share. Nothing here replaces a part of the product."""
