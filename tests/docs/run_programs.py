"""Runs the programs of a page, one after the other with their names shared, as a reader goes through them.

``python run_programs.py FILE``: FILE has a JSON list of ``[place, program]``. Writes ``[place, output]`` for each as a
line of JSON; ends with the traceback of the first that fails.
"""

import contextlib
import io
import json
import sys
from pathlib import Path


def main(name: str) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    for place, program in json.loads(Path(name).read_text("utf-8")):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(program, place, "exec"), names)
        sys.stdout.write(json.dumps([place, said.getvalue()]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
