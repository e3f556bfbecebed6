"""`trunkline demo`: two workers, a producer, a kill in the middle, and the account at the end."""

from trunkline.demo.account import Account
from trunkline.demo.play import play

__all__ = ["Account", "play"]
