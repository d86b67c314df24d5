"""schemathesis against the running service, as two tenants and an administrator: `make fuzz`."""
