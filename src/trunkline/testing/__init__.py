"""For tests of applications: the real engine in a database that lives as long as one test.

    def test_an_order_sends_a_mail() -> None:
        with Sandbox(app) as sandbox:
            place_order("42")
            sandbox.assert_enqueued(send_mail, order="42")
            assert sandbox.drain().completed == 1

`AsyncSandbox` is the same for asynchronous tests. With pytest the fixtures `trunkline_sandbox` and
`trunkline_async_sandbox` return them; see `trunkline.testing.plugin`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trunkline.testing.sandbox import AsyncSandbox, Drained, Sandbox

__all__ = ["AsyncSandbox", "Drained", "Sandbox"]


def __getattr__(name: str) -> Any:
    # pytest imports the plugin, and with it this module, at every start, so this must be cheap.
    if name in __all__:
        from trunkline.testing import sandbox  # noqa: PLC0415 - as above

        return getattr(sandbox, name)
    raise AttributeError(f"module 'trunkline.testing' has no attribute {name!r}")
