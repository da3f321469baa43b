"""Studies as text and HTML: the live terminal, tables, notebook cards."""
