"""The routes, one module a group."""
