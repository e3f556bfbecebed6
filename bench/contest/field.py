"""Installs the products and opens them; an unavailable one is left out, with the reason."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.contest.limits import TookTooLong, within
from bench.contest.scene import Entrant, Scene, first_line
from bench.contest.sizes import ContestSizes
from bench.place import Place
from bench.rivals.product import Product
from bench.rivals.products import find

__all__ = ["Field"]

# Time to install, because some products are large or are built here: for one product, for all
# together, and for each one after that, which is enough to detect an existing installation.
_PREPARE_SECONDS = 300.0
_PREPARE_ALL_SECONDS = 12 * 60.0
_FIND_SECONDS = 15.0
_OPEN_SECONDS = 60.0


class Field:
    """The products of a run, and those that were left out."""

    def __init__(self) -> None:
        self.products: list[Product] = []
        self.skipped: dict[str, str] = {}
        self.versions: dict[str, dict[str, str]] = {}

    def prepare(self, keys: Sequence[str]) -> None:
        """Install the products before a server is started."""
        give_up = time.monotonic() + _PREPARE_ALL_SECONDS
        for key in keys:
            begin = time.monotonic()
            limit = max(min(_PREPARE_SECONDS, give_up - begin), _FIND_SECONDS)
            try:
                with within(limit, "installing it"):
                    product = find(key)
                    product.prepare()
                    self.versions[key] = product.versions()
            except (Exception, TookTooLong) as error:  # noqa: BLE001 - the run continues without it
                self._skip(key, error)
            else:
                self.products.append(product)
                versions = ", ".join(f"{name} {v}" for name, v in self.versions[key].items())
                print(
                    f"  {product.name}: {versions} ({time.monotonic() - begin:.0f} s)", flush=True
                )

    @contextmanager
    def open(self, place: Place, sizes: ContestSizes, deadline: float) -> Iterator[Scene]:
        """Create a database for each; drop them afterwards."""
        with ExitStack() as stack:
            folder = tempfile.TemporaryDirectory(prefix="trunkline-bench-")
            path = Path(stack.enter_context(folder))
            entrants = []
            for product in self.products:
                try:
                    with within(_OPEN_SECONDS, "creating its tables"):
                        contender = stack.enter_context(product.open(place))
                except (Exception, TookTooLong) as error:  # noqa: BLE001 - as above
                    self._skip(product.key, error)
                else:
                    entrants.append(Entrant(product, contender))
            yield Scene(entrants, path, sizes, deadline)

    def _skip(self, key: str, error: BaseException) -> None:
        self.skipped[key] = first_line(error)
        self.versions.pop(key, None)
        print(f"  {key} is left out: {self.skipped[key]}", flush=True)
