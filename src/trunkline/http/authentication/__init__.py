"""Who is asking: tokens, service keys, and the limit of failed sign-ins."""

from trunkline.http.authentication.authenticator import Authenticator

__all__ = ["Authenticator"]
