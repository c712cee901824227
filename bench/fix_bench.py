#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `berth run --fix` does to programs that know nothing of it: how much faster, and nothing slower.

Method. Each case of fix_cases.py runs in two processes at once, one plain, one under `berth run --fix`,
of which one works while the other waits. They take turns, and each pair of turns begins with the other
one. In a turn the case's work is done for about TURN seconds, the first work of which is not counted: it
finds what the other process has left in the CPU's caches. A turn's figure is the median of the rest, a case's
the median over its pairs of the ratio plain / fixed, with the 95 % confidence interval of the ratios'
geometric mean (Student's t on their logarithms). Before and after the pairs both processes check their
result, element by element. A process that is not measured has run under --fix before, so that the
machine's copy profile is there: that is measured once for each machine.

    python3 bench/fix_bench.py --berth build/release/bin/berth [--set gain|same|all] [--pairs N] [--json FILE]
                               [--unrecorded | --control]

`--set gain` measures what should gain, `same` what should not become slower. Cases of one line of the tables
below share their two processes. The bars stand there, too.
`--unrecorded` has the fixed process run with the two variables that `--fix` sets and nothing recorded;
`--control` has it run plain, too: what that shows is the noise of the machine, and of two processes whose
memory lies differently, which the interval within one pair of processes does not hold.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))

# case: least ratio plain / fixed; with it, the least share of the page-locked rate.
GAIN = {
    "torch": {
        "torch_to_1": (1.0, None),
        "torch_to_4": (1.0, None),
        "torch_to_16": (1.5, None),
        "torch_to_64": (1.5, None),
        "torch_to_256": (5.5, 0.88),
        "torch_to_1024": (5.5, 0.88),
        "torch_cpu_1": (1.0, None),
        "torch_cpu_4": (1.0, None),
        "torch_cpu_16": (2.5, None),
        "torch_cpu_64": (2.5, None),
        "torch_cpu_256": (15.0, None),
        "torch_cpu_1024": (15.0, None),
        "torch_copy_1": (1.0, None),
        "torch_copy_16": (1.0, None),
        "torch_copy_256": (3.0, None),
        "torch_copy_1024": (3.0, None),
        "torch_train_pageable": (4.0, None),
        "torch_train_whole": (1.0, None),
        "torch_strided": (1.0, None),
    },
    "cupy": {
        "cupy_asnumpy_256": (6.0, None),
        "cupy_rows": (1.0, None),
    },
    "jax": {"jax_put_1536": (4.0, None)},
    "files": {
        "torch_load_mmap": (3.5, None),
        "safe_open": (4.0, None),
    },
}
# Seconds of work in a turn.
TURN = 0.05
# Nothing slower: 1 / ratio at most this, at its 95 % bound.
MOST = 1.02
SAME = [
    ["torch_many_to_4k", "torch_many_cpu_4k", "torch_many_to_64k", "torch_many_cpu_64k"],
    ["torch_many_to_512k", "torch_many_cpu_512k", "torch_many_to_1024k", "torch_many_cpu_1024k"],
    ["torch_train_resident", "torch_items", "torch_graph", "torch_device_to_device"],
    ["torch_pinned_to", "torch_pinned_cpu", "torch_streams", "torch_overlap"],
    ["torch_threads_512k", "torch_threads_16m", "torch_mixed_sizes"],
    ["torch_loader", "torch_loader_pinned"],
    ["cupy_asarray_256", "cupy_managed"],
    ["jax_put_64", "jax_put_256", "jax_get_256"],
    ["torch_load", "safetensors_load_file"],
]
# Student's t, 97.5 %, by degrees of freedom; beyond the table the last one is used, which is larger.
T = {
    1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262,
    10: 2.228, 12: 2.179, 15: 2.131, 20: 2.086, 30: 2.042, 60: 2.000,
}  # fmt: skip


class Worker:
    """A process that serves cases."""

    def __init__(self, prefix, environment, cases):
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [*prefix, sys.executable, os.path.join(HERE, "fix_cases.py"), *cases],
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.errors.seek(0)
            raise RuntimeError(
                f"status {self.process.returncode}: {self.errors.read()[-600:].strip()}"
            )
        return json.loads(line)

    def ask(self, word):
        self.say(word)
        return self.read()

    def say(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def end(self):
        """The standard error, whole."""
        try:
            self.process.stdin.close()
            self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.errors.seek(0)
        return self.errors.read()


def interval(ratios):
    """The 95 % confidence interval of the geometric mean."""
    logs = [math.log(ratio) for ratio in ratios]
    if len(logs) < 2:
        return 0.0, math.inf
    t = T[max(k for k in T if k <= len(logs) - 1)]
    half = t * statistics.stdev(logs) / math.sqrt(len(logs))
    middle = statistics.fmean(logs)
    return math.exp(middle - half), math.exp(middle + half)


def works_in_turn(seconds):
    """How often a work of that length is done in a turn, the first one included."""
    return max(2, min(200, math.ceil(TURN / seconds) + 1))


def run_case(plain, fixed, words):
    """Figures of the case that both workers have just prepared."""
    copied = plain.read()["copied"]
    fixed.read()
    right = [worker.ask("check")["right"] for worker in (plain, fixed)]
    works = {
        name: works_in_turn(min(worker.ask("go 3")["seconds"]))
        for name, worker in (("plain", plain), ("fixed", fixed))
    }
    times = {"plain": [], "fixed": [], "pinned": []}
    begin = time.monotonic()
    for at in range(words.pairs):
        order = (("plain", plain), ("fixed", fixed))
        for name, worker in order if at % 2 == 0 else order[::-1]:
            times[name].append(statistics.median(worker.ask(f"go {works[name]}")["seconds"][1:]))
        pinned = plain.ask(f"pinned {works['fixed']}")["seconds"]
        if pinned:
            times["pinned"].append(statistics.median(pinned[1:]))
        if at + 1 >= words.least_pairs and time.monotonic() - begin > words.seconds:
            break
    right += [worker.ask("check")["right"] for worker in (plain, fixed)]
    ratios = [a / b for a, b in zip(times["plain"], times["fixed"])]
    low, high = interval(ratios)
    found = {
        "pairs": len(ratios),
        "works": works,
        "bytes": copied,
        "ratio": statistics.median(ratios),
        "ratio_low": low,
        "ratio_high": high,
        "right": all(right),
        "times": times,
    }
    for name, values in times.items():
        found[name + "_seconds"] = statistics.median(values) if values else None
    if found["pinned_seconds"]:
        found["of_pinned"] = found["pinned_seconds"] / found["fixed_seconds"]
    return found


def rate(found, name):
    seconds = found[name + "_seconds"]
    return f"{found['bytes'] / seconds / 1e9:7.2f}" if seconds and found["bytes"] else f"{'':7}"


def judge(name, found, bar):
    least, of_pinned = bar
    if not found["right"]:
        return "WRONG"
    if least is None:  # nothing slower
        bound = 1 / found["ratio_low"]
        return f"{bound:.3f} " + ("ok" if bound <= MOST else "ABOVE 1.02")
    verdict = "ok" if found["ratio"] >= least else f"BELOW {least}"
    if of_pinned is not None:
        share = found["of_pinned"]
        verdict += f", {share:.2f} of pinned " + ("ok" if share >= of_pinned else f"BELOW {of_pinned}")
    return verdict


def fixed_worker(words, cases, report):
    environment = {"XDG_CACHE_HOME": words.cache}
    if words.control:
        return Worker([], environment, cases)
    if words.unrecorded:
        library = os.path.join(os.path.dirname(words.berth), "../lib/libberth_preload.so")
        fixing = {"LD_PRELOAD": os.path.realpath(library), "BERTH_FIX": "1"}
        return Worker([], {**environment, **fixing}, cases)
    return Worker([words.berth, "run", "--fix", "--output", report, "--"], environment, cases)


def run_group(words, cases, bars, results):
    plain = Worker([], {"XDG_CACHE_HOME": words.cache}, cases)
    fixed = fixed_worker(words, cases, words.cache + "/report.txt")
    try:
        for name in cases:
            found = run_case(plain, fixed, words)
            for worker in (plain, fixed):
                worker.say("next")
            results[name] = found
            print(
                f"{name:24} {rate(found, 'plain')} {rate(found, 'fixed')} {rate(found, 'pinned')}"
                f"  {found['ratio']:6.2f} [{found['ratio_low']:.3f} {found['ratio_high']:.3f}]"
                f" n {found['pairs']:3}  {judge(name, found, bars[name])}",
                flush=True,
            )
    except (RuntimeError, BrokenPipeError) as error:
        print(f"{cases}: {error}", flush=True)
        results.setdefault("failed", []).append(str(cases))
    finally:
        plain.end()
        errors = fixed.end()
        if words.reports:
            with open(words.reports, "a") as file:
                file.write(f"=== {cases}\n{errors[-1500:]}\n")
                if os.path.exists(words.cache + "/report.txt"):
                    with open(words.cache + "/report.txt") as report:
                        file.write(report.read()[:6000])


def warm_up(words):
    """A process under --fix, whose engine finds and saves the machine's copy profile."""
    fixed = fixed_worker(words, ["torch_to_64"], os.devnull)
    fixed.read()
    for _ in range(5):
        fixed.ask("go 20")
    fixed.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--berth", required=True)
    parser.add_argument("--set", choices=("gain", "same", "all"), default="all")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--least-pairs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=4, help="after which a case gets no more pairs")
    parser.add_argument("--only", default="", help="cases whose name has one of these, by commas")
    parser.add_argument("--without", help="not this case")
    parser.add_argument("--unrecorded", action="store_true")
    parser.add_argument("--control", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--reports", help="a file that gets berth's reports")
    words = parser.parse_args()
    words.berth = os.path.abspath(words.berth)
    results = {}
    with tempfile.TemporaryDirectory() as words.cache:
        warm_up(words)
        print(f"{'case':24} {'plain':>7} {'fixed':>7} {'pinned':>7}  ratio [95 %] (GB/s, medians)")
        groups = []
        if words.set in ("gain", "all"):
            groups += [(list(cases), cases) for cases in GAIN.values()]
        if words.set in ("same", "all"):
            groups += [(cases, dict.fromkeys(cases, (None, None))) for cases in SAME]
        for cases, bars in groups:
            chosen = [
                name
                for name in cases
                if any(part in name for part in words.only.split(",")) and name != words.without
            ]
            if chosen:
                run_group(words, chosen, bars, results)
    if words.json:
        with open(words.json, "w") as file:
            json.dump(results, file)
    wrong = [name for name, found in results.items() if name != "failed" and not found["right"]]
    if wrong or results.get("failed"):
        print(f"wrong: {wrong}; did not run: {results.get('failed', [])}")
        sys.exit(1)


if __name__ == "__main__":
    main()
