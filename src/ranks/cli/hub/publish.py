"""`ranks publish RUN --to REPO_ID`: a run's model to the hub."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranks.cli.flags.parse import Positional, parse
from ranks.cli.saved.exported import export_checkpoint, wants_onnx
from ranks.cli.saved.run_folder import SavedRun, open_run
from ranks.cli.units import size
from ranks.engine.config import RunConfig
from ranks.engine.files.jsonl import iter_rows, last_rows, number
from ranks.engine.files.regular import DamagedFile
from ranks.engine.files.strict_json import read_object
from ranks.engine.runs.find_run import find_folder
from ranks.engine.runs.folder import EVENTS_FILE, METRICS_FILE, RunFolder
from ranks.errors import UserError

if TYPE_CHECKING:
    from ranks.hub.publish import LocalFile

FOLDER = "publish"
"""Of the files that are uploaded, in the folder of the run."""


@dataclass(frozen=True)
class PublishFlags:
    """Upload a run's model to the Hugging Face Hub: its export and a model card; then compare the sha256 sums.

    The token is read from the process variable HF_TOKEN. HF_ENDPOINT names another hub."""

    run: Positional[str]
    """A run's name under runs/, or the path of its folder."""
    to: str
    """OWNER/NAME of the repository. It is made where there is none."""
    checkpoint: str = "latest"
    """best (lowest score), latest, or the number of an iteration."""
    format: str | None = None
    """As in `ranks export`: onnx adds model.onnx."""
    evaluation: Path | None = None
    """What `ranks evaluate RUN --json` printed for this checkpoint, for the model card."""
    license: str | None = None
    """The license in the model card, by its id: apache-2.0, mit, cc-by-4.0, ..."""
    private: bool = False
    """Make a new repository private; an existing one that is public is refused."""
    dry_run: bool = False
    """Write the files into the run's folder publish/, show what would be uploaded, and upload nothing."""
    trust_code: bool = False
    """Execute the copy of the workload's file that is in the run folder."""
    runs_dir: Path = Path("runs")
    """The folder of the run folders."""


def publish(argv: Sequence[str]) -> int:
    """Write the export and the card, upload them, and verify what the hub has."""
    flags = parse(PublishFlags, argv, prog="ranks publish")
    asked = f"ranks publish {flags.run} --to {flags.to}"
    from ranks.hub.client import HubClient
    from ranks.hub.publish import publish as publish_files
    from ranks.hub.repo_id import check_repo_id

    repo_id = check_repo_id(flags.to, asked)
    if flags.license is not None and not re.fullmatch(r"[a-z0-9][a-z0-9.+-]{1,60}", flags.license):
        raise UserError(
            f"--license {flags.license}", "not the id of a license", "write apache-2.0, mit, cc-by-4.0, ..."
        )
    with_onnx = wants_onnx(flags.format, f"--format {flags.format}")
    client = None if flags.dry_run else HubClient(asked)
    if client is not None:
        client.need_token()
    run = open_run(find_folder(flags.run, flags.runs_dir, asked), asked, trust_code=flags.trust_code)
    folder = run.folder / FOLDER
    files, iteration = write_files(run, repo_id, folder, flags, with_onnx)
    print(f"{run.folder.name}, iteration {iteration:,}")
    for file in files.values():
        print(f"  {folder / file.name}  {size(file.num_bytes)}  sha256 {file.sha256}")
    if client is None:
        print(f"nothing was uploaded (--dry-run); without it, these {len(files)} files go to {repo_id}")
        return 0
    message = f"{run.folder.name}, iteration {iteration}"
    commit = publish_files(client, repo_id, folder, files, message, private=flags.private)
    print(f"{client.endpoint}/{repo_id}: commit {commit[:12]}, {len(files)} files, sha256 sums equal")
    print(f"  ranks fetch {repo_id}")
    return 0


def write_files(
    run: SavedRun, repo_id: str, folder: Path, flags: PublishFlags, with_onnx: bool | None
) -> tuple[dict[str, LocalFile], int]:
    """Write the export, ranks.json and the card into a folder; the files, and the checkpoint's iteration. Raises
    UserError."""
    from ranks.engine.export.about import ABOUT_FILE, ExportAbout
    from ranks.engine.files.disk import remove, write_durably, writing
    from ranks.hub.card import CardFacts, card, train_command, without_folders
    from ranks.hub.files import CARD, OPTIONAL, sha256_of
    from ranks.hub.publish import LocalFile, local_files
    from ranks.workloads import is_path

    asked = f"ranks publish {flags.run} --to {repo_id}"
    remove(folder)
    iteration, _ = export_checkpoint(run, flags.checkpoint, folder, with_onnx)
    name = Path(run.workload).name if is_path(run.workload) else run.workload
    settings = {"engine": asdict(run.engine), "config": asdict(run.config)}
    defaults = {"engine": asdict(RunConfig()), "config": asdict(run.module.Config())}
    settings, defaults = (without_folders(json.loads(json.dumps(x, default=str))) for x in (settings, defaults))
    provenance = RunFolder(run.folder).read_run()
    files = ["model.safetensors", "config.json", "model.py", *(n for n in OPTIONAL if (folder / n).exists())]
    sums = {file: sha256_of(folder / file) for file in files}
    versions = {key: str(value) for key, value in dict(provenance.get("versions", {})).items()}
    about = ExportAbout(name, run.folder.name, iteration, run.engine.seed, settings["config"], versions, sums)
    rows = [row for row in iter_rows(run.folder / METRICS_FILE) if (at := number(row, "iteration")) and at <= iteration]
    plan = next((event for event in last_rows(run.folder / EVENTS_FILE) if event.get("event") == "plan"), {})
    evaluation = read_evaluation(flags.evaluation, run, iteration) if flags.evaluation else None
    player = "model" if hasattr(run.module, "MODEL_PLAYER") else None
    command = train_command(name, settings, defaults)
    facts = CardFacts(about, rows, provenance, plan, command, evaluation, player)
    listed = [LocalFile(file, (folder / file).stat().st_size, digest) for file, digest in sums.items()]
    with writing(asked, folder, "nothing was uploaded"):
        write_durably(folder / ABOUT_FILE, about.to_bytes())
        write_durably(folder / CARD, card(facts, repo_id, listed, flags.license).encode())
    return local_files(folder, asked), iteration


def read_evaluation(path: Path, run: SavedRun, iteration: int) -> Mapping[str, float]:
    """The metrics in the output of `ranks evaluate --json`. Raises UserError where it is of another checkpoint."""
    asked = f"--evaluation {path}"
    do = f"ranks evaluate {run.folder.name} --checkpoint {iteration} --json > {path}"
    try:
        found: Mapping[str, Any] = read_object(path, follow=True)
    except DamagedFile as damage:
        raise UserError(asked, str(damage), do) from None
    metrics = found.get("metrics")
    if not isinstance(metrics, dict):
        raise UserError(asked, "no output of `ranks evaluate --json`", do)
    if (found.get("run"), found.get("iteration")) != (run.folder.name, iteration):
        text = (
            f"an evaluation of {found.get('run')}, iteration {found.get('iteration')}, not of iteration {iteration:,}"
        )
        raise UserError(asked, text, do)
    return {name: value for name in metrics if (value := number(metrics, name)) is not None}
