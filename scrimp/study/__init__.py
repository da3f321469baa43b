"""Studies: create, ask, tell, optimize; the loop that runs trials and the limits that end it."""
