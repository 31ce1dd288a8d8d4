"""`ranks submit sky WORKLOAD`: write the task file of SkyPilot, checked against its catalogue and its package."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ranks.cli.flags.parse import Positional, parse
from ranks.cli.flags.split import split_flags
from ranks.cli.renting.requested import check_image, checked_train, command_line, files_to_copy, finish, show_forecast
from ranks.errors import UserError, nearest
from ranks.secrets import refuse_in_words

if TYPE_CHECKING:
    from ranks.renting.request import Machine, Request
    from ranks.renting.sky.offers import SkyOffer

CLUSTER = re.compile(r"[A-Za-z]([-_.A-Za-z0-9]*[A-Za-z0-9])?")
"""Names that SkyPilot takes for a cluster."""
MARGIN_MINUTES = 16
"""For a save, and until SkyPilot has ended an idle machine."""
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class SubmitSkyFlags:
    """Write the task file that rents a machine through SkyPilot, trains, and ends the machine.

    GPUs, counts and prices are checked against SkyPilot's catalogue, and what the cloud cannot do against SkyPilot's
    package, before anything is written. The machine always ends itself: when the run is over and at home, stuck, or at
    its limit. Nothing is started without --yes."""

    workload: Positional[str]
    """Its name, or the path of your own file."""
    gpus: str
    """Kind and number on one node: B200:8; none for CPUs, with --ranks."""
    image: str
    """A container image with ranks in it: docs/rented-machine.md says how to make one."""
    cloud: str | None = None
    """runpod, lambda, vast, aws, ...; by default the cheapest in the catalogue."""
    train: str = ""
    """Flags of ranks train, in one string: --train="--preset full --exact"."""
    nodes: int = 1
    """Machines of one run, with --volume."""
    ranks: int | None = None
    """Processes on one node, with --gpus none."""
    max_hours: float = 24.0
    """The machine is ended after so many hours, whatever happens."""
    max_cost: float | None = None
    """The machines are ended before they have cost so much."""
    price: float | None = None
    """What one machine costs an hour; by default the catalogue's price."""
    spot: bool = False
    """Take machines that the cloud may take back, as a managed job of SkyPilot, with --volume."""
    volume: str | None = None
    """A volume of SkyPilot's for the runs, which outlives the machine."""
    files: tuple[str, ...] = ()
    """Files and folders below this folder that are copied to ~/work: --files data/prices,lib."""
    secrets: tuple[str, ...] = ()
    """Names of process variables that SkyPilot hands on: --secrets HF_TOKEN."""
    setup: str = ""
    """A shell line before ranks is used: --setup "pip install mypackage"."""
    then: str | None = None
    """A shell command after evaluation and export: --then "rclone copy runs remote:runs"."""
    alarm: str | None = None
    """A shell command on the machine for alarms, as of ranks autodown: --alarm 'curl -d "$RANKS_ALARM" ntfy.sh/me'."""
    keep: int | None = None
    """Minutes that the machine waits for ranks pull when the run is over; by default 60, and 0 with --spot."""
    disk: int = 200
    """Disk of a machine, in GB."""
    catalog: Path | None = None
    """A catalogue of SkyPilot, with CLOUD/vms.csv; by default ~/.sky/catalogs."""
    profile: Path | None = None
    """The forecast uses a profile that ranks forecast --save-profile has written; by default one is measured here."""
    no_forecast: bool = False
    """Leave the forecast out."""
    name: str | None = None
    """Name of the run and of the cluster; by default the workload's name."""
    out: Path | None = None
    """The file; by default NAME.sky.yaml."""
    overwrite: bool = False
    """Replace a file of that name."""
    yes: bool = False
    """Start it: sky launch ... FILE."""


def submit_sky(argv: Sequence[str]) -> int:
    """Check, write, print, and start where --yes is given."""
    flags = parse(SubmitSkyFlags, argv, prog="ranks submit sky")
    from ranks.renting.request import Machine, Request
    from ranks.renting.sky.task import SkyTask, launch, task_text
    from ranks.renting.written_file import write_file

    asked = f"ranks submit sky {flags.workload}"
    refuse_in_words([*argv, *split_flags(flags.train)])
    command = command_line("sky", argv, asked)
    settings, train = checked_train(flags.workload, flags.train, flags.name)
    name = str(settings.engine.name)
    keep = flags.keep if flags.keep is not None else 0 if flags.spot else 60
    _check_words(flags, name, keep, asked)
    machine = Machine.of(flags.gpus, flags.ranks)
    files = files_to_copy(flags.workload, flags.files, asked)
    offer = _offer(flags, machine)
    request = Request(
        flags.workload,
        train,
        name,
        "runs",
        machine,
        flags.nodes,
        flags.max_hours,
        1,
        (),
        flags.price or offer.price,
        flags.then,
    )
    if flags.spot and flags.price is None:
        request = replace(request, price=offer.spot_price)
    _check_cost(flags, request, keep)
    said = _check_cloud(flags, offer.cloud)
    task = SkyTask(
        offer.cloud,
        offer.accelerator,
        flags.image,
        files,
        flags.setup,
        flags.volume,
        flags.spot,
        flags.disk,
        flags.max_cost,
        keep,
        flags.alarm,
        flags.secrets,
    )
    if not flags.no_forecast:
        show_forecast(request, flags.profile)
    path = flags.out or Path(f"{name}.sky.yaml")
    text = task_text(request, task, command, str(path))
    write_file(path, text, asked, overwrite=flags.overwrite)
    print(text)
    print(f"{path}: {flags.nodes} x {machine.words} at {offer.cloud} ({offer.instance}, {offer.region})")
    print("\n".join([*request.price_lines(), *_cap(flags), said]))
    start = launch(request, task, str(path))
    return finish([*start, "--yes"] if flags.yes else start, asked, yes=flags.yes)


def _check_words(flags: SubmitSkyFlags, name: str, keep: int, asked: str) -> None:
    """Raises UserError where a word cannot be what it is meant to be."""
    check_image(flags.image)
    if not CLUSTER.fullmatch(name):
        raise UserError(
            f"--name {name}", "SkyPilot has no clusters of such names", "begin with a letter, end with none of . _ -"
        )
    for variable in flags.secrets:
        if not VARIABLE.fullmatch(variable):
            raise UserError(f"--secrets {variable!r}", "that is no name of a variable", "give the name, not the value")
    if flags.volume is not None and not re.fullmatch(r"[a-z0-9][a-z0-9-]*", flags.volume):
        raise UserError(f"--volume {flags.volume!r}", "no volume has such a name", "see sky volumes ls")
    if flags.volume is None and (flags.spot or flags.nodes > 1):
        why = "the run must outlive the machine" if flags.spot else "all nodes must see the run folder"
        raise UserError(
            "--spot" if flags.spot else f"--nodes {flags.nodes}",
            why,
            "make a volume with sky volumes apply, and give --volume NAME",
        )
    if not 0 <= keep <= 7 * 24 * 60 or not 10 <= flags.disk <= 100_000:
        raise UserError(asked, "--keep is 0 to 10,080 minutes, --disk 10 to 100,000 GB", "change it")
    if flags.max_cost is not None and not flags.max_cost > 0:
        raise UserError(f"--max-cost {flags.max_cost}", "it must be a number above 0", "give --max-cost 100")
    if flags.max_hours * 60 <= keep + MARGIN_MINUTES:
        found = f"{flags.max_hours:g} h leave no time for a run, a save and --keep {keep} minutes"
        raise UserError(f"--max-hours {flags.max_hours:g}", found, "give more hours, or a shorter --keep")


def _check_cost(flags: SubmitSkyFlags, request: Request, keep: int) -> None:
    """Raises UserError where the cap is reached before a run has had time: the watcher would end the job at once."""
    if flags.max_cost is None or request.price is None:
        return
    minutes = 60 * flags.max_cost / (request.price * request.nodes)
    if minutes <= keep + MARGIN_MINUTES:
        found = (
            f"it is spent after {minutes:.0f} minutes, which leave no time for a run, a save and --keep {keep} minutes"
        )
        raise UserError(f"--max-cost {flags.max_cost:g}", found, "give a higher cap, or a shorter --keep")


def _offer(flags: SubmitSkyFlags, machine: Machine) -> SkyOffer:
    """The cheapest machine of the catalogue that the request fits. Raises UserError."""
    from ranks.renting.sky.offers import catalogue_folder, choose, clouds_in, read_offers

    asked = f"--gpus {flags.gpus}" + (f" --cloud {flags.cloud}" if flags.cloud else "")
    folder = catalogue_folder(flags.catalog, asked)
    clouds = clouds_in(folder)
    if flags.cloud is not None and flags.cloud not in clouds:
        do = nearest(flags.cloud, clouds, f"the catalogue lists {', '.join(clouds)}")
        raise UserError(f"--cloud {flags.cloud}", "the catalogue has no such cloud", do)
    offers = [offer for cloud in clouds if flags.cloud in (None, cloud) for offer in read_offers(folder, cloud)]
    if flags.price is not None:  # also machines whose price the catalogue does not know
        offers = [replace(offer, price=flags.price, spot_price=flags.price) for offer in offers]
    return choose(offers, machine, spot=flags.spot, asked=asked)


def _check_cloud(flags: SubmitSkyFlags, cloud: str) -> str:
    """Ask SkyPilot's package what the cloud cannot do; a line about it. Raises UserError for what the request needs."""
    from ranks.renting.sky import package

    found = package.unsupported(cloud, f"--cloud {cloud}")
    if found is None:
        return "not checked: what this cloud can do, since SkyPilot is not installed here (pip install skypilot)"
    version, features = found
    wanted = [
        (package.DOCKER, f"--image {flags.image}", "choose another --cloud"),
        (package.AUTODOWN, f"--cloud {cloud}", "choose a cloud whose machines can end themselves"),
    ]
    wanted += [(package.MULTI_NODE, f"--nodes {flags.nodes}", "give --nodes 1")] if flags.nodes > 1 else []
    wanted += [(package.SPOT, "--spot", "leave it out")] if flags.spot else []
    package.refuse_unsupported(features, wanted, cloud)
    stops = "" if "stop" not in features else "; it cannot stop a machine, only end it"
    return f"checked with SkyPilot {version}: {cloud} can do what the file asks for{stops}"


def _cap(flags: SubmitSkyFlags) -> list[str]:
    if flags.max_cost is None:
        return []
    cap = f"before they have cost {flags.max_cost:,.2f}, counted from the start of the job"
    return [f"cost cap: the watcher ends the machines {cap}"]
