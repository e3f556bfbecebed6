"""`python -m trunkline` is the same as `trunkline`."""

from trunkline.cli.main import main

if __name__ == "__main__":
    main()
