"""The page of `ranks watch --serve`, by real requests against folders that the tests write."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ranks.cli.main import main
from ranks.engine.runs.folder import FORMAT
from ranks.watch.live_run import MOST_CURVES, LiveRun
from ranks.watch.serve.answer import layout
from ranks.watch.serve.server import ADDRESS, PageServer
from ranks.watch.tail import READ_BYTES

HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(2)">'
Get = Callable[..., tuple[http.client.HTTPResponse, bytes]]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def metrics(first: int, last: int, **more: float) -> list[dict[str, Any]]:
    """Rows of iterations `first` to `last`, half a second each."""
    return [
        {
            "iteration": n,
            "time_s": n / 2,
            "train/loss": 1 / n,
            "time/compute_s": 0.4,
            "time/save_s": 0.1,
            "time/iteration_s": 0.5,
            "time/samples_per_second": 64.0,
            **more,
        }
        for n in range(first, last + 1)
    ]


def make_run(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """The files of a finished run, as the engine writes them."""
    folder.mkdir(parents=True)
    settings = {"workload": "images", "engine": {"seed": 1}, "config": {"lr": 0.1}}
    run = {"format": FORMAT, "identity": settings, "versions": {"torch": "2"}, "git": "abc"}
    (folder / "run_config.json").write_text(json.dumps(settings))
    (folder / "run.json").write_text(json.dumps(run))
    write_rows(folder / "metrics.jsonl", rows)
    plan = {"event": "plan", "ranks": 2, "devices": ["cpu"], "iterations": 40, "iteration": 0, "time_s": 0.0}
    write_rows(folder / "events.jsonl", [plan])
    ends = [{"event": "opened", "time": 1e9}, {"event": "stopped", "time": 1e9 + 3600, "iteration": len(rows)}]
    write_rows(folder / "sessions.jsonl", ends)
    return folder


@contextmanager
def served(folder: Path, price: float | None = None) -> Generator[Get]:
    with PageServer(folder, 0, price) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()

        def get(
            path: str, method: str = "GET", hosts: tuple[str, ...] = ("localhost",)
        ) -> tuple[http.client.HTTPResponse, bytes]:
            connection = http.client.HTTPConnection(ADDRESS, server.server_port, timeout=30)
            connection.putrequest(method, path, skip_host=True)
            for host in hosts:
                connection.putheader("Host", host)
            connection.endheaders()
            response = connection.getresponse()
            content = response.read()
            connection.close()
            return response, content

        try:
            yield get
        finally:
            server.shutdown()
            thread.join()


def data(get: Get, since: str = "") -> dict[str, Any]:
    response, content = get(f"/data?since={since}")
    assert response.status == 200, content
    return json.loads(content)


def test_a_run_in_numbers_and_only_what_is_new(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", metrics(1, 20))
    with served(folder, price=3.0) as get:
        first = data(get)
        assert (first["name"], first["state"], first["share"], first["problem"]) == ("run", "stopped", 0.5, "")
        tiles = dict(first["tiles"])
        assert tiles["iterations"] == "20 of 40"
        assert tiles["speed"] == "64 samples/s"
        assert tiles["cost"] == "3.00"
        assert tiles["goodput"] == "0.3%"
        assert dict(first["table"])["ranks"] == "2 on cpu, ? mode"
        curves = {name: (start, points) for name, start, points, _ in first["curves"]}
        assert curves["train/loss"] == (0, [[n, pytest.approx(1 / n)] for n in range(1, 21)])
        assert set(curves) == {"train/loss", "time/samples_per_second"}
        assert first["phase_names"] == ["compute", "save"]
        assert first["phases"][1][-1] == [20, 0.4, 0.1]
        assert [row[1] for row in first["history"]] == ["opened", "stopped"]
        assert [heading for heading, _ in first["layout"]] == ["Training", "Speed and memory"]

        again = data(get, first["next"])
        assert (again["reset"], again["curves"], again["next"]) == (False, [], first["next"])
        assert "layout" not in again
        assert "history" not in again
        with (folder / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(metrics(21, 21, **{"val/loss": 0.5})[0]) + '\n{"iteration": 22, "tr')
        new = data(get, first["next"])
        assert ["train/loss", 20, [[21, pytest.approx(1 / 21, rel=1e-6)]], 1 / 21] in new["curves"]
        assert ["val/loss", 0, [[21, 0.5]], 0.5] in new["curves"]
        assert "layout" in new
        assert data(get, "abc-7")["reset"]


def test_what_the_ranks_use_is_drawn_over_the_iterations(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", metrics(1, 20))
    names = ("use/rank0/cpu_percent", "use/rank1/cpu_percent")
    use = [{"time": 1e9 + n, "iteration": n, names[0]: n, names[1]: 2 * n} for n in (4, 8)]
    again = [{**row, "use/rank0/cpu_percent": 77.0} for row in use[:1]]  # the iteration was done again after a crash
    write_rows(folder / "telemetry.jsonl", [*use, *again, {"iteration": 9, "use/rank0/x": "text", "other": 5}])
    straggler = {"event": "straggler", "time": 1e9 + 5, "rank": 1, "cause": "data", "text": "rank 1 is a straggler"}
    stopped = {"event": "stopped", "time": 1e9 + 4, "iteration": 20}
    write_rows(folder / "sessions.jsonl", [{"event": "opened", "time": 1e9}, stopped, straggler])
    with served(folder) as get:
        first = data(get)
        curves = {name: points for name, _, points, _ in first["curves"]}
        assert curves["use/rank0/cpu_percent"] == [[4, 4], [8, 8]]
        assert curves["use/rank1/cpu_percent"] == [[4, 8], [8, 16]]
        assert "other" not in curves
        lines = [["use/rank0/cpu_percent", "rank 0"], ["use/rank1/cpu_percent", "rank 1"]]
        assert first["layout"][-1] == ["By rank", [["use/cpu_percent", lines]]]
        assert first["history"][-1][1:] == ["straggler", "rank 1 is a straggler"]
        assert first["state"] == "stopped", "a notice is no end"
        write_rows(folder / "metrics.jsonl", metrics(1, 5))
        cut = data(get, first["next"])
        assert cut["reset"]
        assert "use/rank0/cpu_percent" in {name for name, *_ in cut["curves"]}


def test_the_page_says_how_far_a_long_iteration_is(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", metrics(1, 2))
    with served(folder) as get:
        first = data(get)
        assert dict(first["tiles"])["now"] == ""
        (folder / "progress.json").write_text('{"iteration": 2, "part": "labels", "share": 0.4}')
        assert dict(data(get, first["next"])["tiles"])["now"] == "iteration 3: labels 40%"


def test_a_resumed_run_replaces_the_rows_that_were_cut_back(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", metrics(1, 20))
    with served(folder) as get:
        before = data(get)
        write_rows(folder / "metrics.jsonl", metrics(1, 5))
        cut = data(get, before["next"])
        assert cut["reset"]
        assert dict(cut["tiles"])["iterations"] == "5 of 40"
        (loss,) = (points for name, _, points, _ in cut["curves"] if name == "train/loss")
        assert [point[0] for point in loss] == [1, 2, 3, 4, 5]
        write_rows(folder / "events.jsonl", [{"event": "warning", "time": 1e9 + 1, "iteration": 2, "text": "odd"}])
        after = data(get, cut["next"])
        assert not after["reset"]
        assert [row[1:] for row in after["history"]][1] == ["warning", "iteration 2: odd"]


def test_hostile_text_is_inert(tmp_path: Path) -> None:
    name = "<img src=x onerror=alert(1)>"
    folder = make_run(
        tmp_path / name, metrics(1, 3, **{f"train/{HOSTILE}": 1.0, "__proto__/x": 2.0, "a\x1b[2J/b": 1.0})
    )
    write_rows(folder / "events.jsonl", [{"event": "warning", "time": 1e9 + 1, "iteration": HOSTILE, "text": HOSTILE}])
    with served(folder) as get:
        page_of, page = get("/")
        data_of, content = get("/data")
    with served(make_run(tmp_path / "plain", [])) as get:
        assert get("/")[1] == page, "the page is the same for all runs"
    assert data_of.headers["Content-Type"] == "application/json; charset=utf-8"
    for response in (page_of, data_of):
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        policy = response.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "Access-Control-Allow-Origin" not in response.headers
    found = json.loads(content)
    assert found["name"] == name
    assert [details for _, what, details in found["history"] if what == "warning"] == [
        f"iteration {HOSTILE}: {HOSTILE}"
    ]
    assert not any("\x1b" in metric for metric, *_ in found["curves"])
    text = page.decode()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|Function\(|\son\w+=", text)
    assert re.findall(r'https?://[^"]*', text) == ["http://www.w3.org/2000/svg"], "it needs no network"
    assert not re.search(r"\s(src|href)=|@import|url\(", text)


def test_only_requests_of_this_machine_for_two_addresses(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", metrics(1, 2))
    with served(folder) as get:
        for good in ("127.0.0.1", "localhost:7007", "LOCALHOST", "127.0.0.1:1"):
            assert get("/data", hosts=(good,))[0].status == 200
        for bad in (("evil.example",), ("127.0.0.1.evil.example",), ("localhost:x",), (), ("localhost", "evil")):
            response, content = get("/data", hosts=bad)
            assert response.status == 403, bad
            assert b"train" not in content
        for path in ("/run.json", "/../run.json", "/page.html", "/data/x", "/data?since=<b>", "//x/data", "http://x/"):
            assert get(path)[0].status == 404, path
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "<B>"):
            response, content = get("/data", method)
            assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD"), method
            assert content == b"Method Not Allowed\n"
        response, content = get("/", "HEAD")
        assert (response.status, content) == (200, b"")
        assert int(response.headers["Content-Length"]) > 5000
        assert response.headers["Server"] == "ranks"


def test_damaged_and_deleted_folders_are_answered(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = make_run(tmp_path / "run", metrics(1, 3))
    with served(folder, price=1.0) as get:
        assert data(get)["problem"] == ""
        odd: list[dict[str, Any]] = [
            {
                "iteration": 1e308,
                "time_s": 1e308,
                "train/loss": 1e308,
                "time/x_per_second": 1e308,
                "time/compute_s": 1e308,
            },
            {"iteration": -5, "time_s": -1, "train/loss": -1e308, "time/compute_s": 1e308, "rollout/reward": True},
            {"iteration": int("9" * 400), "time_s": [], "train/loss": {"a": 1}},
            {"iteration": 4, "time/iteration_s": 1e308, "memory/peak_bytes": -1},
            {"iteration": 5, "time/iteration_s": 1e308, "train/\ud800": 1.0},
        ]
        write_rows(folder / "metrics.jsonl", odd)
        sessions = [{"event": "opened", "time": -1e308}, {"event": ["x"], "time": 1e308}, {"event": "finished"}]
        write_rows(folder / "sessions.jsonl", [*sessions, {"event": "stopped", "time": 1e308}])
        plan = {"event": "plan", "devices": 7, "iterations": 1e300, "parameters": "x", "ranks": None}
        write_rows(folder / "events.jsonl", [plan, {"event": "skipped_update", "time_s": 1e308}])
        assert data(get)["problem"] == ""
        for name in ("metrics.jsonl", "run_config.json", "sessions.jsonl"):
            (folder / name).unlink()
            (folder / name).mkdir()
        assert "run_config.json" in data(get)["problem"]
        shutil.rmtree(folder)
        gone = data(get)
        assert gone["state"] == "deleted"
        assert "is gone" in gone["problem"]
        assert gone["name"] == "run"
        make_run(folder, metrics(1, 2))
        assert dict(data(get)["tiles"])["iterations"] == "2 of 40"
    assert capfd.readouterr().err == ""


def test_a_long_file_is_read_in_parts_and_metrics_are_limited(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", [{"iteration": 1, **{f"train/{n}": 1.0 for n in range(MOST_CURVES + 50)}}])
    with (folder / "metrics.jsonl").open("a") as file:
        file.write("x" * READ_BYTES + "\n" + json.dumps({"iteration": 2}) + "\n")
    ticks = iter(range(0, 1000, 10))
    live = LiveRun(folder, clock=lambda: next(ticks))
    live.read()
    assert live.unread is not None
    assert len(live.curves) == MOST_CURVES
    for _ in range(4):
        live.read()
    assert (live.unread, live.sums.iterations) == (None, 2)


def test_metrics_of_ranks_share_a_picture() -> None:
    names = ["train/loss", "use/rank10/gpu", "use/rank2/gpu", "use/memory/rank0"]
    training, of_ranks = layout(names)
    assert training == ("Training", [("train/loss", [("train/loss", "")])])
    assert of_ranks == (
        "By rank",
        [
            ("use/gpu", [("use/rank2/gpu", "rank 2"), ("use/rank10/gpu", "rank 10")]),
            ("use/memory", [("use/memory/rank0", "rank 0")]),
        ],
    )


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_run(tmp_path / "runs" / "mine", metrics(1, 2))
    with PageServer(folder, 0) as server:
        port = str(server.server_port)
        for flags, said in (
            (["--serve", "--port", port], f"port {port} of 127.0.0.1 is taken"),
            (["--serve", "--port", "65536"], "from 0 to 65535"),
            (["--port", "80"], "add --serve"),
            (["--serve", "--price", "-1"], "a number above 0"),
        ):
            assert main(["watch", str(folder), *flags]) == 2
            assert said in capsys.readouterr().err
    assert main(["watch", "box:mine", "--serve", "--port", "7100", "--price", "2.5"]) == 2
    proposed = "ssh -t -L 7100:127.0.0.1:7100 box 'ranks watch mine --runs-dir runs --price 2.5 --serve --port 7100'"
    assert proposed in capsys.readouterr().err
    argv = [sys.executable, "-m", "ranks", "watch", "mine", "--runs-dir", str(folder.parent), "--serve", "--port", "0"]
    for number, code in ((signal.SIGINT, 0), (signal.SIGTERM, 143)):
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            found = re.search(r"http://127\.0\.0\.1:(\d+)/", process.stdout.readline())
            assert found is not None
            assert f"ssh -L {found[1]}:127.0.0.1:{found[1]} HOST" in process.stdout.readline()
            assert "Ctrl-C" in process.stdout.readline()
            process.send_signal(number)
            assert process.wait(60) == code
            assert process.stderr.read() == ""
