#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long berth doctor takes for a paste of 10 MB, by kind of text.

Usage: bench/doctor_paste.py [BERTH [MB]]   (default: build/release/bin/berth, 10)

Each kind repeats one machine's output, with another device's address in each repetition where the
tool prints addresses. Prints the best of three runs, in seconds, of the whole command.
"""
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
GOLDEN = os.path.join(ROOT, "tests", "emulator", "golden")


def golden(name):
    with open(os.path.join(GOLDEN, name), encoding="utf-8") as text:
        return text.read()


def lspci(at):
    bus, device = at // 31 % 254 + 1, at % 31 + 1
    domain = at // (31 * 254) % 16
    return f"""{domain:04x}:{bus:02x}:{device:02x}.0 PCI bridge: Advanced Micro Devices, Inc. [AMD] Starship/Matisse GPP Bridge (prog-if 00 [Normal decode])
\tControl: I/O+ Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR- FastB2B- DisINTx+
\tStatus: Cap+ 66MHz- UDF- FastB2B- ParErr- DEVSEL=fast >TAbort- <TAbort- <MAbort- >SERR- <PERR- INTx-
\tLatency: 0, Cache Line Size: 64 bytes
\tInterrupt: pin ? routed to IRQ 29
\tNUMA node: 0
\tBus: primary=00, secondary={bus:02x}, subordinate={bus:02x}, sec-latency=0
\tCapabilities: [58] Express (v2) Root Port (Slot+), MSI 00
\t\tDevCap:\tMaxPayload 512 bytes, PhantFunc 0
\t\t\tExtTag+ RBE+
\t\tDevSta:\tCorrErr+ NonFatalErr- FatalErr- UnsupReq+ AuxPwr- TransPend-
\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM L1, Exit Latency L1 <64us
\t\t\tClockPM- Surprise- LLActRep+ BwNot+ ASPMOptComp+
\t\tLnkSta:\tSpeed 16GT/s (ok), Width x16 (ok)
\t\t\tTrErr- Train- SlotClk+ DLActive+ BWMgmt+ ABWMgmt-
\tCapabilities: [2a0 v1] Access Control Services
\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans+
\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-
\tKernel driver in use: pcieport

"""


def nvidia_topo(_):
    columns = "\t".join(f"GPU{n}" for n in range(8))
    rows = "".join(
        f"GPU{n}\t" + "\t".join("X" if n == m else "NV18" for m in range(8)) + "\t0-47\t0\tN/A\n"
        for n in range(8))
    return f"\t{columns}\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n{rows}\n"


def prose(at):
    return f"line {at} of a log that no tool of ours prints: key = value, {at * 7919 % 1000} of 1000\n"


def lspci_gpu(at):
    return lspci(0) + lspci(at % 64).replace(
        "PCI bridge: Advanced Micro Devices, Inc. [AMD] Starship/Matisse GPP Bridge",
        "Display controller: Advanced Micro Devices, Inc. [AMD/ATI] Aldebaran/MI200 [Instinct MI210]")


def copy_log(at):
    return (f":3:hip_memory.cpp :642 : {at} us: [tid:0x7f] hipMemcpy ( 0x7f4a1853e000, 0x7f490c400000, "
            f"{at}, hipMemcpyHostToDevice )\n"
            f":4:rocblit.cpp :707 : {at} us: 3: [tid:0x7f] HSA Async Copy on copy_engine=0x{at % 4 + 1:x}, "
            f"dst=0x7f4a1853e000, src=0x7f490c400000, size={at}\n")


def told(at):
    return f"Copy {at} from the remote socket's host to GPU {at % 8} is about {at % 60 + 1} GB/s\n"


KINDS = {
    "lspci -vv, all different": lspci,
    "lspci -vv, again and again": lspci_gpu,
    "ROCm's log of copies": copy_log,
    "rates in sentences": told,
    "rocminfo": lambda _: golden("mi250x_node.rocminfo.txt"),
    "rocm-smi --showtopo": lambda _: golden("mi250x_node.showtopo.txt"),
    "nvidia-smi topo -m": nvidia_topo,
    "prose": prose,
}


def seconds(berth, file):
    best = None
    for _ in range(3):
        begin = time.perf_counter()
        subprocess.run([berth, "doctor", file], stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)
        taken = time.perf_counter() - begin
        best = taken if best is None else min(best, taken)
    return best


def main():
    berth = sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build/release/bin/berth")
    wanted = int(float(sys.argv[2] if len(sys.argv) > 2 else 10) * 1e6)
    for name, make in KINDS.items():
        with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as file:
            size = at = 0
            while size < wanted:
                text = make(at)
                file.write(text)
                size += len(text)
                at += 1
            file.flush()
            print(f"{name:27} {size / 1e6:5.1f} MB  {seconds(berth, file.name):6.2f} s")


if __name__ == "__main__":
    main()
