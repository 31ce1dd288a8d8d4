"""`ranks fetch REPO_ID`: a model from the hub."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ranks.cli.flags.parse import Positional, parse
from ranks.cli.units import size
from ranks.errors import UserError, clean


@dataclass(frozen=True)
class FetchFlags:
    """Download a model that `ranks publish` wrote, and compare all its sha256 sums. Nothing is unpickled or executed.

    HF_TOKEN is needed for private repositories only; HF_ENDPOINT names another hub."""

    repo_id: Positional[str]
    """OWNER/NAME of the repository."""
    out: Path | None = None
    """The folder of the model; by default models/OWNER/NAME."""
    revision: str | None = None
    """A branch, a tag or a commit; by default the newest commit of main."""


def fetch(argv: Sequence[str]) -> int:
    """Download, verify, and move into place."""
    flags = parse(FetchFlags, argv, prog="ranks fetch")
    from ranks.hub.client import HubClient
    from ranks.hub.fetch import fetch as fetch_model
    from ranks.hub.repo_id import check_repo_id

    asked = f"ranks fetch {flags.repo_id}"
    repo_id = check_repo_id(flags.repo_id, asked)
    if flags.revision is not None and not flags.revision.strip():
        raise UserError(f"{asked} --revision ''", "an empty name", "name a branch, a tag or a commit")
    done = fetch_model(HubClient(asked), repo_id, flags.revision, flags.out or Path("models") / repo_id)
    about = done.about
    print(f"{done.folder}: {clean(about.workload)}, iteration {about.iteration:,}, commit {done.commit[:12]}")
    print(f"  {len(about.sha256)} files of the model, {size(done.num_bytes)} in all, sha256 sums equal")
    if done.skipped:
        print(f"  not downloaded: {', '.join(map(clean, done.skipped[:5]))}{', ...' if len(done.skipped) > 5 else ''}")
    print("  model.py is code of its owner: read it before you import it")
    return 0
