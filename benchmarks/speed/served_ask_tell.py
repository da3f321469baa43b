"""Time of ask + tell through a server on loopback with several clients, beside Optuna's gRPC proxy.

    python benchmarks/run.py served_ask_tell --clients 16 --pairs 60 --pace 0.5 --optuna .venvs/optuna/bin/python

Every client is a process that asks for a trial and tells a value, ``--pairs`` times. With ``--pace``
it rests so many seconds between pairs on average, as a worker that trains does; 0 is a closed loop,
which measures throughput. All servers run one after the other on the same machine, in rounds, over
SQLite files in a temporary folder, each with random search. Ten pairs per client warm up. Besides
the latency, which grows with whatever else the machine does, the CPU time of the server is printed.

storage: `storage="http://..."`, the client decides. program: POST /api/ask and /api/tell, the server
decides. grpc: `GrpcStorageProxy` of Optuna with RandomSampler.
"""

import argparse
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WARM_UP = 10

OPTUNA_SERVER = """
import sys
from optuna.storages import RDBStorage, run_grpc_proxy_server
run_grpc_proxy_server(RDBStorage(f"sqlite:///{sys.argv[1]}/optuna.db"), host="127.0.0.1", port=int(sys.argv[2]))
"""


def free_port() -> int:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(pair, pairs: int, pace: float) -> list[float]:
    """Milliseconds of each pair after the first ten."""
    found = []
    for number in range(pairs + WARM_UP):
        if pace:
            time.sleep(random.uniform(0, 2 * pace))
        began = time.perf_counter()
        pair()
        if number >= WARM_UP:
            found.append(1000 * (time.perf_counter() - began))
    return found


def client(kind: str, url: str, pairs: int, pace: float) -> list[float]:
    """Run one client."""
    if kind == "storage":
        import scrimp

        study = scrimp.load_study("speed", storage=url)

        def pair() -> None:
            study.tell(study.ask(), 0.5)

    elif kind == "program":
        line = http.client.HTTPConnection(url.removeprefix("http://"))
        headers = {"authorization": f"Bearer {os.environ['SCRIMP_TOKEN']}"}

        def post(name: str, **body: object) -> dict[str, object]:
            line.request("POST", f"/api/{name}", json.dumps({"study": "speed", **body}), headers)
            return json.loads(line.getresponse().read())

        def pair() -> None:
            post("tell", trial=post("ask")["trials"][0]["id"], value=0.5)  # type: ignore[index]

    else:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        host, _, port = url.partition(":")
        storage = optuna.storages.GrpcStorageProxy(host=host, port=int(port))
        known = optuna.load_study(
            study_name="speed", storage=storage, sampler=optuna.samplers.RandomSampler()
        )

        def pair() -> None:
            trial = known.ask()
            trial.suggest_float("x", 0, 1)
            known.tell(trial, 0.5)

    return measure(pair, pairs, pace)


def begin(kind: str, python: str, folder: Path) -> tuple["subprocess.Popen[bytes]", str]:
    """Start a server with one study; return it and its address."""
    port = free_port()
    if kind == "grpc":
        words = [python, "-W", "ignore", "-c", OPTUNA_SERVER, str(folder), str(port)]
        server = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        make = (
            "import optuna, sys; host, port = sys.argv[1].split(':');"
            "storage = optuna.storages.GrpcStorageProxy(host=host, port=int(port));"
            "storage.wait_server_ready(timeout=60); optuna.create_study(study_name='speed', storage=storage)"
        )
        address = f"127.0.0.1:{port}"
    else:
        words = [sys.executable, "-m", "scrimp", "serve", "--port", str(port)]
        words += ["--storage", f"sqlite:///{folder}/{kind}.db", "--tokens", f"{folder}/tokens.json"]
        server = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        address = f"http://127.0.0.1:{port}"
        make = (
            "import scrimp, sys;"
            "scrimp.create_study('speed', scrimp.Space(x=scrimp.Float(0, 1)), method='random', storage=sys.argv[1])"
        )
    made = 1
    while made:
        time.sleep(1.0)
        made = subprocess.run(
            [python if kind == "grpc" else sys.executable, "-W", "ignore", "-c", make, address],
            stderr=subprocess.DEVNULL,
        ).returncode
    return server, address


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--pace", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--kinds", default="storage,program,grpc")
    parser.add_argument("--optuna", default=".venvs/optuna/bin/python")
    parser.add_argument("--client", nargs=2, metavar=("KIND", "URL"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.client:
        print(json.dumps(client(*options.client, options.pairs, options.pace)))
        return
    for number in range(options.rounds):
        for kind in options.kinds.split(","):
            python = options.optuna if kind == "grpc" else sys.executable
            with tempfile.TemporaryDirectory() as folder:
                words = [
                    sys.executable,
                    "-m",
                    "scrimp",
                    "token",
                    "new",
                    "--role",
                    "own",
                    "--tokens",
                ]
                token = subprocess.run(
                    [*words, f"{folder}/tokens.json"], capture_output=True, text=True, check=True
                ).stdout.strip()
                os.environ["SCRIMP_TOKEN"] = token
                server, url = begin(kind, python, Path(folder))
                try:
                    each = [python, "-W", "ignore", __file__, "--client", kind, url]
                    each += ["--pairs", str(options.pairs), "--pace", str(options.pace)]
                    began, used = time.monotonic(), cpu_seconds(server.pid)
                    running = [
                        subprocess.Popen(each, stdout=subprocess.PIPE, text=True)
                        for _ in range(options.clients)
                    ]
                    found = sorted(
                        value for one in running for value in json.loads(one.communicate()[0])
                    )
                    seconds = time.monotonic() - began
                    used = cpu_seconds(server.pid) - used
                finally:
                    server.kill()
                    server.wait()
            median, late = found[len(found) // 2], found[int(0.99 * len(found))]
            print(
                f"round {number} {kind:>8}: median {median:.1f} ms, 99th percentile {late:.1f} ms,"
                f" {len(found)} pairs in {seconds:.0f} s, server CPU"
                f" {1000 * used / (len(found) + WARM_UP * options.clients):.2f} ms a pair",
                flush=True,
            )


if __name__ == "__main__":
    main()
