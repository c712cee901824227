#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is `berth bandwidth` right? Page-locked copies beside reference_copy, which has nothing of berth.

Both run as processes of their own in turns, and each round begins with the other one. Of each figure:

    ratio      median over the rounds of berth / reference of that round     bar: within 1 % of 1
    spread     largest distance of a round from berth's median, in percent   bar: 1 %
    baseline   what such a machine is known to give (--baseline h200)        bar: within 5 %

"both-h2d" and "both-d2h" are the two directions at once, "both-sum" the sum of their rates. The reference
also says what both moved between the first event and the last ("span"), which is below the sum where one
direction ends before the other.

    python3 bench/bandwidth_bars.py [--berth FILE] [--reference FILE] [--runtime cuda|hip] [--device N]
                                    [--sizes 64,512] [--rounds 5] [--samples 9] [--baseline h200] [--json FILE]

Sizes are MiB. Exit status: 0 all bars are kept, 1 one is not, 2 wrong usage, 3 a program has failed.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILT = os.path.join(ROOT, "build", "release", "bin")
MIB = 1 << 20
RATIO_BAR = 0.01
SPREAD_BAR = 0.01
BASELINE_BAR = 0.05

# GB/s, least and most, measured on such machines by other tools.
BASELINES = {
    "h200": {"h2d": (55.4, 55.4), "d2h": (55.2, 55.2), "both-sum": (98, 101)},
}
FIGURES = ["h2d", "d2h", "both-h2d", "both-d2h", "both-sum"]


class Failed(Exception):
    pass


def output_of(command):
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as fault:
        raise Failed(f"{command[0]}: {fault.strerror}") from fault
    if ended.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit status {ended.returncode}\n{ended.stderr.strip()}")
    return ended.stdout


def with_sums(rates, sizes):
    """{(figure, bytes): GB/s}, complete; what is missing is not taken for 0."""
    for size in sizes:
        for name in FIGURES[:4]:
            if (name, size) not in rates:
                raise Failed(f"no figure of {name} at {size // MIB} MiB")
        rates["both-sum", size] = rates["both-h2d", size] + rates["both-d2h", size]
    return rates


def by_berth(options, sizes):
    command = [options.berth, "bandwidth", "--runtime", options.runtime, "--device", str(options.device),
               "--samples", str(options.samples), "--kinds", "pinned,both",
               "--sizes", ",".join(f"{size // MIB}MiB" for size in sizes), "--format", "json"]
    rates = {}
    for figure in json.loads(output_of(command))["figures"]:
        if "not_measured" in figure:
            raise Failed(f"berth: {figure['not_measured']}")
        both = "both-" if "bidirectional" in figure["traits"] else ""
        way = {"host_to_device": "h2d", "device_to_host": "d2h"}[figure["direction"]]
        rates[both + way, figure["bytes"]] = figure["gb_per_s"]
    return with_sums(rates, sizes)


def by_reference(options, sizes):
    command = [options.reference, "--runtime", options.runtime, "--device", str(options.device),
               "--samples", str(options.samples)] + [str(size // MIB) for size in sizes]
    lines = [json.loads(line) for line in output_of(command).splitlines()]
    return with_sums({(line["what"], line["bytes"]): line["gb_per_s"] for line in lines}, sizes)


def run_rounds(options, sizes):
    sides = [("berth", by_berth), ("reference", by_reference)]
    rounds = []
    for number in range(options.rounds):
        if sys.stderr.isatty():
            print(f"\rround {number + 1} of {options.rounds}", end="", file=sys.stderr, flush=True)
        order = sides if number % 2 == 0 else sides[::-1]
        rounds.append({name: measure(options, sizes) for name, measure in order})
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    return rounds


def row_of(rounds, name, size, baseline):
    berth = [one["berth"][name, size] for one in rounds]
    reference = [one["reference"][name, size] for one in rounds]
    middle = statistics.median(berth)
    row = {
        "figure": name,
        "bytes": size,
        "berth_gb_per_s": middle,
        "reference_gb_per_s": statistics.median(reference),
        "ratio": statistics.median(b / r for b, r in zip(berth, reference)),
        "spread": max(abs(one / middle - 1) for one in berth),
        "missed": [],
    }
    if abs(row["ratio"] - 1) > RATIO_BAR:
        row["missed"].append("ratio")
    if row["spread"] > SPREAD_BAR:
        row["missed"].append("spread")
    least, most = baseline.get(name, (0, float("inf")))
    if not least * (1 - BASELINE_BAR) <= middle <= most * (1 + BASELINE_BAR):
        row["missed"].append("baseline")
    return row


def show(rows, rounds):
    print(f"{'figure':<10}{'MiB':>6}{'berth':>9}{'reference':>11}{'ratio':>9}{'spread %':>10}  missed")
    for row in rows:
        print(f"{row['figure']:<10}{row['bytes'] // MIB:>6}{row['berth_gb_per_s']:>9.2f}"
              f"{row['reference_gb_per_s']:>11.2f}{row['ratio']:>9.4f}{100 * row['spread']:>10.2f}"
              f"  {', '.join(row['missed']) or '-'}")
    for size in dict.fromkeys(row["bytes"] for row in rows):
        spans = [one["reference"].get(("both-span", size)) for one in rounds]
        if None not in spans:
            print(f"span of both at {size // MIB} MiB, by the reference: {statistics.median(spans):.2f}")


def whole(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("give 1 or more")
    return number


def read_options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--berth", default=os.path.join(BUILT, "berth"))
    parser.add_argument("--reference", default=os.path.join(BUILT, "reference_copy"))
    parser.add_argument("--runtime", choices=["cuda", "hip"], default="cuda")
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--sizes", default="64,512", type=lambda text: [whole(one) for one in text.split(",")])
    parser.add_argument("--rounds", type=whole, default=5)
    parser.add_argument("--samples", type=whole, default=9)
    parser.add_argument("--baseline", choices=sorted(BASELINES))
    parser.add_argument("--json", metavar="FILE")
    return parser.parse_args()


def main():
    options = read_options()
    sizes = [size * MIB for size in options.sizes]
    try:
        rounds = run_rounds(options, sizes)
    except Failed as fault:
        print(f"bandwidth_bars: {fault}", file=sys.stderr)
        return 3
    baseline = BASELINES.get(options.baseline, {})
    rows = [row_of(rounds, name, size, baseline) for size in sizes for name in FIGURES]
    show(rows, rounds)
    if options.json:
        named = [{side: {f"{name}@{size}": rate for (name, size), rate in rates.items()}
                  for side, rates in one.items()} for one in rounds]
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"rows": rows, "rounds": named}, file, indent=1)
    return 1 if any(row["missed"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
