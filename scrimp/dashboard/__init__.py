"""The web dashboard: pages, live updates and access control."""
