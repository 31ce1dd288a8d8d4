"""A script for `ranks launch`: one rank of a short run. `child.py FOLDER SECONDS WORKLOAD FLAGS...`"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ERROR = "error-{}.txt"
"""The file in which a rank leaves why it failed."""


def main(argv: list[str]) -> None:
    """Train, and leave the record of this rank, or its error, in the folder."""
    from ranks.cli.flags.settings import resolve
    from ranks.errors import UserError
    from ranks.hardware.scale.run_rank import record_rank, write
    from ranks.hardware.short_runs.job import Job

    folder, seconds, workload, *flags = argv
    try:
        settings = resolve(workload, flags)
        job = Job(settings.workload, settings.module.train, settings.config, settings.engine)
        write(record_rank(job, Path(folder), float(seconds)), Path(folder))
    except Exception as error:
        said = f"{error.asked}: {error.found}" if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        (Path(folder) / ERROR.format(os.environ.get("RANK", "0"))).write_text(said, encoding="utf-8")
        raise


if __name__ == "__main__":
    sys.path.remove(str(Path(__file__).parent))  # a workload's own modules may have the names of those here
    main(sys.argv[1:])
