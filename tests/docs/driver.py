"""Runs the Python blocks of one page, in one namespace and one event loop; started by a test.

Reads one JSON object a line from standard input and answers one to the file descriptor given.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import json
import linecache
import os
import sys
import traceback
from types import ModuleType
from typing import Any


def run(runner: asyncio.Runner, module: ModuleType, text: str, place: str) -> dict[str, Any]:
    """Run one block as if it were typed into an interpreter that knows `await`."""
    linecache.cache[place] = (len(text), None, text.splitlines(keepends=True), place)
    output = io.StringIO()
    trace = ""
    with contextlib.redirect_stdout(output):
        try:
            code = compile(text, place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            if code.co_flags & inspect.CO_COROUTINE:
                runner.run(_awaited(code, module))
            else:
                exec(code, vars(module))  # noqa: S102 - running what the page shows is the point
        except BaseException:  # noqa: BLE001 - whatever it is, the test shows it
            trace = traceback.format_exc()
    return {"output": output.getvalue(), "trace": trace}


async def _awaited(code: Any, module: ModuleType) -> None:
    await eval(code, vars(module))  # noqa: S307 - see above


def main() -> None:
    # As a module of its own, so that annotations and pickling find what blocks define.
    module = ModuleType("page")
    sys.modules["page"] = module
    sys.path.insert(0, "")
    with asyncio.Runner() as runner, os.fdopen(int(sys.argv[1]), "w") as answers:
        for line in sys.stdin:
            block = json.loads(line)
            answer = run(runner, module, block["text"], block["place"])
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


if __name__ == "__main__":
    main()
