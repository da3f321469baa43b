"""The command line: one module per `scrimp` command."""
