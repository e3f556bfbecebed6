"""`trunkline demo`: a producer, two workers, one of which is killed, and the final account."""

from trunkline.demo.account import Account
from trunkline.demo.play import play

__all__ = ["Account", "play"]
