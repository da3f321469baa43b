"""A server for studies: the pages, and an HTTP interface for workers, notebooks and programs."""
