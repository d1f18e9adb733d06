"""`python -m voucherd.cli` is `voucherd`."""

from voucherd.cli import main

if __name__ == "__main__":
    main()
