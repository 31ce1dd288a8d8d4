"""The figures of docs/before-you-rent.md and docs/while-it-runs.md: doctor, memory, back-tests, watchdog."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.pages.results import Result, Row, command, machine, newest, section


def before_renting(_proofs: Path, benchmarks: Path) -> Iterator[str]:
    """Faults that the doctor found, memory, and forecasts of published figures."""
    found = newest(benchmarks)
    if faults := found.get("doctor_faults"):
        yield from doctor(faults)
    if memory := found.get("memory_fit"):
        yield from memory_fit(memory)
    if memory := found.get("memory_fit_cuda"):
        yield from memory_fit_cuda(memory)
    if tests := found.get("forecast_backtests"):
        yield from back_tests(tests)
    if jobs := found.get("forecast_jobs"):
        yield from network_jobs(jobs)
    if ranks := found.get("forecast_unequal"):
        yield from unequal(ranks)


def while_running(_proofs: Path, benchmarks: Path) -> Iterator[str]:
    """Hangs, stragglers and clean runs."""
    result = newest(benchmarks).get("watchdog")
    if result is None:
        return
    yield from ["| What | Found |", "|---|---|", *(f"| {what} | {figure} |" for what, figure, _ in watchdog(result))]
    yield from ["", f"`{command(result)}`, {machine(result)}, 1-minute load {load(result)}."]


def in_short(_proofs: Path, benchmarks: Path) -> Iterator[str]:
    """A section of docs/results.md."""
    yield from section("Before and while a run", rows(newest(benchmarks)))


def rows(benchmarks: dict[str, Result]) -> Iterator[Row]:
    """The figures in one line each."""
    if faults := benchmarks.get("doctor_faults"):
        of = faults["summary"]
        clean = f"{of['clean_runs_with_an_alarm']} alarms in {of['clean_runs']} runs without a fault"
        yield "`ranks doctor`: injected faults", f"{of['found']} of {of['faults']} found; {clean}", faults
    if memory := benchmarks.get("memory_fit"):
        of = memory["summary"]
        within = f"{of['within_15_percent']} of {of['increments_of_1_gb_or_more']} shapes within 15 %"
        verdicts = f"{of['right']} of {of['sizes']} verdicts right" if of["sizes"] else "verdicts not measured"
        yield "memory that the doctor forecasts", f"{within}; {verdicts}", memory
    if memory := benchmarks.get("memory_fit_cuda"):
        of = memory["summary"]
        within = f"{of['within_10_percent']} of {of['peaks']} within 10 %"
        verdicts = f"{of['right']} of {of['sizes']} verdicts right" if of["sizes"] else "verdicts not measured"
        yield "GPU memory that the doctor forecasts", f"{within}; {verdicts}", memory
    if tests := benchmarks.get("forecast_backtests"):
        kinds = [(kind, tests["summary"][kind]) for kind in ("link", "run")]
        held = "; ".join(f"{of['within']} of {of['cases']} {kind}s in the interval" for kind, of in kinds)
        yield "forecasts of published figures", held, tests
    if jobs := benchmarks.get("forecast_jobs"):
        of = jobs["judgement"]["judged"]
        errors = f"median error {of['median_error']:.1%}, 90th percentile {of['p90_error']:.1%}"
        chosen = f"the fastest number of ranks in {of['right_fastest']} of {of['jobs']}"
        figure = f"{errors}, {of['within_interval']:.0%} in the interval; {chosen}"
        yield "forecasts of jobs whose passes sleep, on 1 to 8 ranks over slow links", figure, jobs
    if watched := benchmarks.get("watchdog"):
        yield from ((f"watchdog: {what}", figure, result) for what, figure, result in watchdog(watched))


def watchdog(result: Result) -> Iterator[Row]:
    """The figures that there are."""
    figures = result["summary"]
    if hangs := figures.get("hangs"):
        named = f"{hangs['right']} of {hangs['cases']} named with rank, phase and line within {hangs['limit_s']:g} s"
        yield "causes of hangs", f"{named}, the last after {hangs['latest_s']:g} s", result
    if slow := figures.get("stragglers"):
        kinds = ", ".join(f"{cause} {right} of {all_of}" for cause, (right, all_of) in slow["by_cause"].items())
        rates = f"precision {slow['precision']:g}, recall {slow['recall']:g}"
        yield "stragglers", f"{slow['cases']}: {rates} ({kinds}); median {slow['median_after_s']:.0f} s", result
    if clean := figures.get("clean"):
        yield "runs without a fault", f"{clean['cases']}, {clean['with_a_notice']} with a notice", result
    if long := figures.get("long"):
        figure = f"{long['notices']} notices, {long['share']:.2%} of the run's CPU time for watching"
        yield f"{long['iterations']:,} steps of 20 ms with evaluations and saves", figure, result
    else:
        yield "10,000 steps of 20 ms, and the CPU time of watching", "not measured yet", result


def doctor(result: Result) -> Iterator[str]:
    """Each fault with what was said, and the clean runs."""
    figures, faults = result["summary"], result["faults"]
    yield from ["### Faults that were injected", "", "| Fault | The doctor |", "|---|---|"]
    for name, case in faults.items():
        said = case.get("not_injected") or ("missed" if not case["found"] else plain(case["finding"]["found"]))
        yield f"| {name} | {said} |"
    blind = [case for case in faults.values() if case.get("author", "") != "the doctor's author" and "found" in case]
    yield ""
    yield f"{figures['found']} of {figures['faults']} faults were found with cause and remedy."
    yield f"{len(blind)} of them were written by people who had not seen the doctor."
    if first := result.get("held_out_first_run"):
        of = first["summary"]
        yield f"Of the last {of['faults']} of these it found {of['found']} before it was corrected for them."
    if figures["over_20_s"]:
        yield f"{figures['over_20_s']} doctors took more than 20 s; both machines of a pair share these cores."
    if figures["clean_runs"]:
        alarms = figures["clean_runs_with_an_alarm"]
        yield f"Of {figures['clean_runs']} runs on machines without a fault {alarms} had an alarm."
    for kind, title in (("one_host_s", "one machine"), ("two_hosts_s", "two machines")):
        if seconds := figures[kind]:
            yield f"On {title} the doctor took {seconds['median']:.0f} s (median), at most {seconds['most']:.0f} s."
    yield from [f"`{command(result)}`, {machine(result)}, 1-minute load {load(result)}.", ""]


def memory_fit(result: Result) -> Iterator[str]:
    """Each shape, and the verdicts around a limit."""
    figures = result["summary"]
    yield from ["### Memory", "", "| Workload | Forecast | In fact | Error |", "|---|---|---|---|"]
    for name, case in result["increments"].items():
        forecast, fact = (f"{case[key] / 1e9:.2f} GB" for key in ("forecast_bytes", "fact_bytes"))
        yield f"| {name} | {forecast} | {fact} | {case['error']:+.1%} |"
    yield ""
    yield f"The increment over what a process holds after `build`: {figures['within_15_percent']} of"
    yield f"{figures['increments_of_1_gb_or_more']} shapes of 1 GB and more within 15 %."
    if figures["sizes"]:
        yield f'"Fits" and "does not fit" were right for {figures["right"]} of {figures["sizes"]} sizes around the'
        yield f'limit of a container; {figures["sizes_that_fit"]} of them fit, so "does not fit" was hardly tested.'
    yield from [f"`{command(result)}`, {machine(result)}, 1-minute load {load(result)}.", ""]


def memory_fit_cuda(result: Result) -> Iterator[str]:
    """Each shape on a GPU, failures included, and the verdicts around a limit."""
    figures, parts = result["summary"], result["parts"]
    yield from ["### Memory of a GPU", "", "| Workload | Forecast | In fact | Error |", "|---|---|---|---|"]
    for name, case in parts.items():
        if "error" in case:
            forecast, fact = (f"{case[key]['peak_bytes'] / 1e9:.2f} GB" for key in ("forecast", "fact"))
            yield f"| {name} | {forecast} | {fact} | {case['error']:+.1%} |"
    yield ""
    yield f"Peaks of torch's allocator: {figures['within_10_percent']} of {figures['peaks']} within 10 %."
    if figures["sizes"]:
        yield f'"Fits" and "does not fit" were right for {figures["right"]} of {figures["sizes"]} sizes around a limit'
        yield f'of torch\'s allocator; {figures["sizes_that_fit"]} of them fit, so "does not fit" was hardly tested.'
    if figures["failed"]:
        yield f"Failed: {', '.join(figures['failed'])}."
    yield from [f"`{command(result)}`, {machine(result)}, 1-minute load {load(result)}.", ""]


def back_tests(result: Result) -> Iterator[str]:
    """Each published figure with its forecast, misses included."""
    yield from ["### Forecasts of published figures", ""]
    yield from [
        "| What | Known or assumed | Forecast | Published | Error | In the interval |",
        "|---|---|---|---|---|---|",
    ]
    for case in result["cases"]:
        digits = 0 if case["fact"] >= 100 else 1
        forecast, low, high, fact = (f"{case[key]:,.{digits}f}" for key in ("forecast", "low", "high", "fact"))
        held = "yes" if case["within"] else "no"
        shown = f"{forecast} ({low} to {high}) {case['unit']}"
        yield f"| {case['name']} | {case['assumed']} | {shown} | {fact} | {case['error']:+.0%} | {held} |"
    yield ""
    for kind, title in (("link", "links"), ("run", "runs")):
        of = result["summary"][kind]
        errors = f"median error {of['median_error']:.0%}, largest {of['largest_error']:.0%}"
        yield f"{of['cases']} {title}: {errors}, {of['within']} in the interval."
    yield "Not computed: " + "; ".join(f"{what} ({why})" for what, why in result["not_computed"].items()) + "."
    yield from [f"`{command(result)}`, {result['origin']['date'][:10]}.", ""]


def forecast_and_fact(benchmarks: Path) -> Iterator[str]:
    """The forecast table of real runs, where they were made."""
    if result := newest(benchmarks).get("forecast_fact"):
        yield from ["", *forecast_table(result)]


def forecast_table(result: Result) -> Iterator[str]:
    """Each workload and number of ranks: what `ranks forecast` said before, and what the runs took."""
    yield f"`ranks forecast` and the runs after it ({machine(result)}, one thread a rank):"
    heads = ["Workload", "Ranks", "An iteration (90 %)", "In fact", "Error", "Whole run (90 %)", "In fact", "Held"]
    yield from ["", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, workload in result["workloads"].items():
        for num_ranks in sorted({run["num_ranks"] for run in workload["runs"]}):
            runs = [run for run in workload["runs"] if run["num_ranks"] == num_ranks]
            each, whole = _median_interval(runs, "forecast_s"), _median_interval(runs, "forecast_run_s")
            factor, unit = (1000, "ms") if each["middle"] < 1 else (1, "s")
            fact_s = statistics.median(run["fact_s"] for run in runs)
            took_s = statistics.median(run["fact_run_s"] for run in runs)
            iterations, whole_runs = sum(run["is_within"] for run in runs), sum(map(_held_whole, runs))
            held = f"{iterations} and {whole_runs} of {len(runs)}"
            cells = [name, str(num_ranks), _between(each, factor, unit), f"{_three(factor * fact_s)} {unit}"]
            cells += [f"{each['middle'] / fact_s - 1:+.1%}", _between(whole, 1, "s"), f"{_three(took_s)} s", held]
            yield f"| {' | '.join(cells)} |"
    loads = [run["load"] for workload in result["workloads"].values() for run in workload["runs"]]
    yield ""
    yield "Medians. Held: how many iterations, and how many whole times, took what their interval says. A new"
    yield f"forecast comes before each run of one and of two ranks. Load before the runs: at most {max(loads):.1f}."
    commit = result["origin"].get("commit")
    for name, workload in result["workloads"].items():
        if (other := workload.get("commit", commit)) != commit:
            yield f"{name} was measured on {workload['date'][:10]}, at {other[:8]}."


def _held_whole(run: Result) -> bool:
    """Whether the whole run took what the interval says."""
    return run["forecast_run_s"]["low"] <= run["fact_run_s"] <= run["forecast_run_s"]["high"]


def _median_interval(runs: Sequence[Result], name: str) -> dict[str, float]:
    """Low, middle and high, each the median over the runs."""
    return {part: statistics.median(run[name][part] for run in runs) for part in ("low", "middle", "high")}


def _between(interval: dict[str, float], factor: float, unit: str) -> str:
    """'160 ms (150 to 171)'."""
    low, middle, high = (_three(factor * interval[name]) for name in ("low", "middle", "high"))
    return f"{middle} {unit} ({low} to {high})"


def _three(value: float) -> str:
    """With three digits at least."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def network_jobs(result: Result) -> Iterator[str]:
    """Forecasts of jobs whose passes sleep, over real links, and what they took."""
    heads = ["Jobs", "Ranks", "Runs", "Median error", "90th percentile", "Mean", "Held"]
    yield from ["### Jobs over slow links", "", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, of in result["judgement"].items():
        for ranks, errors in [("1 to 8", of), *of["by_ranks"].items()]:
            cells = [f"{errors[key]:.1%}" for key in ("median_error", "p90_error")]
            cells += [f"{errors['mean_error']:+.1%}", f"{errors['within_interval']:.0%}"]
            yield f"| {of['jobs']} {name} | {ranks} | {errors['configurations']} | {' | '.join(cells)} |"
    of = result["judgement"]["judged"]
    yield ""
    yield "Held: the fact is in the interval, which is meant to hold in 90 %. Goals for the judged jobs: 5 % and"
    yield "10 %, held in 84 to 96 %, and in 29 of 30 jobs a number of ranks that is the best one or costs at most 3 %"
    yield f"more. The fastest number was chosen in {of['right_fastest']} of {of['jobs']} jobs, the cheapest in"
    yield f"{of['right_cheapest']}. {of['thrown_out']} of {of['measured']} runs took more than 70 % of the two cores"
    yield "that all ranks share, and are left out. With eight ranks these two cores make iterations longer, of which a"
    yield "forecast knows nothing."
    yield from [f"`{command(result)}`, {machine(result)}.", ""]


def unequal(result: Result) -> Iterator[str]:
    """Two ranks, the second one slower by a factor that is given."""
    yield from [
        "### Unequal ranks",
        "",
        "| The second rank | Shares | Forecast | In fact | Error |",
        "|---|---|---|---|---|",
    ]
    for case in result["cases"]:
        low, middle, high = (f"{1000 * seconds:.0f}" for seconds in case["forecast_s"])
        cells = [f"{case['slow']:g} times slower", ",".join(map(str, case["shares"])), f"{middle} ms ({low} to {high})"]
        yield f"| {' | '.join(cells)} | {1000 * case['fact_s']:.0f} ms | {case['error']:+.1%} |"
    of = result["summary"]
    yield ""
    yield f"{of['cases']} runs of two ranks on CPU cores whose passes sleep, {of['within']} in the interval."
    yield "The factor is given, so the speed of a card by its data sheet is not tested. The forecast applies it"
    yield "to all work; here the work of the host is not slower, so forecasts are too long."
    yield from [f"`{command(result)}`, {machine(result)}, 1-minute load {load(result)}.", ""]


def load(result: Result) -> str:
    return f"{result['origin']['load_average'][0]:.0f}"


def plain(text: str) -> str:
    """Without what would end a cell of a table, and without the temporary folder of the experiment."""
    return re.sub(r"FOLDER/", "", text.replace("|", "/").replace("\n", " "))
