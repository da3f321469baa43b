"""``python -m scrimp``: the command ``scrimp`` with this Python."""

from scrimp.cli.main import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
