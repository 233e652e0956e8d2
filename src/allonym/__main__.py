"""``python -m allonym`` is the command line."""

from allonym.cli import main

if __name__ == "__main__":
    main()
