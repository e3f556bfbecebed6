"""The speed of this version over that of another commit, each through its own checkout.

Python processes import the package of their version. The suite calls only what is public and the
same in both versions: functions and views of schema ``trunkline``, the client, the worker.
"""
