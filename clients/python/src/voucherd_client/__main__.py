"""`python -m voucherd_client` is `voucherd-client`."""

from voucherd_client.cli import main

if __name__ == "__main__":
    main()
