"""``python -m scrimp``: the command ``scrimp``, of this very Python."""

from scrimp.cli.main import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
