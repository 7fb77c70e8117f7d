"""The services that clients and operators speak to."""
