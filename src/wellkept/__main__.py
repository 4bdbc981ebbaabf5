"""``python -m wellkept`` is the command ``wellkept``."""

from wellkept.cli import main

if __name__ == "__main__":
    main()
