#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording costs a PyTorch training loop.

Method. The same loop runs in processes of its own, in turns plain, recorded without device times, and
recorded with them (CUPTI); each process gives the median of its steps' times, each step ended by a
synchronisation. The medians of the processes are compared. The losses must be the same to the bit.

    python3 bench/record_torch.py --preload build/release/lib/libberth_preload.so [--runs 7]
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

STEPS = 300
WARM_UP = 30


def train():
    import torch

    torch.manual_seed(0)
    layers = []
    for _ in range(8):
        layers += [torch.nn.Linear(2048, 2048), torch.nn.GELU(), torch.nn.LayerNorm(2048)]
    model = torch.nn.Sequential(*layers).to("cuda")
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)
    batches = [torch.randn(2048, 2048).pin_memory() for _ in range(4)]
    times = []
    loss = None
    for step in range(WARM_UP + STEPS):
        begin = time.perf_counter()
        batch = batches[step % 4].to("cuda", non_blocking=True)
        loss = (model(batch) - batch).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    print(statistics.median(times[WARM_UP:]) * 1e3, float(loss).hex())


def run_once(environment):
    done = subprocess.run(
        [sys.executable, os.path.abspath(__file__), "--train"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    milliseconds, loss = done.stdout.split()[-2:]
    return float(milliseconds), loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--preload")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--train", action="store_true")
    words = parser.parse_args()
    if words.train:
        train()
        return
    if not words.preload:
        parser.error("--preload names libberth_preload.so")
    with tempfile.TemporaryDirectory() as folder:
        recorded = {
            "LD_PRELOAD": os.path.abspath(words.preload),
            "BERTH_RECORD": os.path.join(folder, "%p.berth"),
        }
        ways = {
            "plain": {},
            "recorded, no device times": {**recorded, "BERTH_RECORD_DEVICE_TIMES": "off"},
            "recorded": recorded,
        }
        found = {name: [] for name in ways}
        losses = set()
        for _ in range(words.runs):
            for name, environment in ways.items():
                milliseconds, loss = run_once(environment)
                found[name].append(milliseconds)
                losses.add(loss)
    plain = statistics.median(found["plain"])
    for name, values in found.items():
        median = statistics.median(values)
        print(
            f"{name:26} {median:8.3f} ms a step  {100 * (median / plain - 1):+6.2f} %  "
            f"[{min(values):.3f}..{max(values):.3f}, n {len(values)}]"
        )
    print("losses equal" if len(losses) == 1 else f"LOSSES DIFFER: {losses}")
    sys.exit(0 if len(losses) == 1 else 1)


if __name__ == "__main__":
    main()
