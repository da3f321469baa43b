"""The study's data model: its problem, its events, and the trials derived from them."""
