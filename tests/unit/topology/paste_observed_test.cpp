// SPDX-License-Identifier: Apache-2.0
// Rates, logs and trees that people paste: bandwidth tools, the runtime's log, NCCL's tree, prose.
#include <gtest/gtest.h>

#include "unit/topology/paste_support.hpp"

namespace berth::topology {
namespace {

using machine::host_distance;
using machine::link_kind;
using machine::traffic;

TEST(PastedBandwidthTest, TakesTheNodeOfNumactlAndTheLargestCopy) {
  const auto seen = test::read_text(
      "$ numactl --membind=1 --cpunodebind=1 ./bandwidthTest --device=2 --mode=shmoo\n"
      "[CUDA Bandwidth Test] - Starting...\n Device 2: NVIDIA A100\n"
      " Host to Device Bandwidth, 1 Device(s)\n PINNED Memory Transfers\n"
      "   Transfer Size (Bytes)\tBandwidth(GB/s)\n   1000 0.5\n   32000000 24.5\n\n"
      " Device to Host Bandwidth, 1 Device(s)\n PAGEABLE Memory Transfers\n"
      "   Transfer Size (Bytes)\tBandwidth(MB/s)\n   32000000 6500.0\n"
      " Device to Device Bandwidth, 1 Device(s)\n   32000000 1200000.0\n"
      "$ ./bandwidthTest\n Host to Device Bandwidth, 1 Device(s)\n   32000000 25000.0\n");
  ASSERT_EQ(seen.rates.size(), 3U);
  EXPECT_EQ(seen.rates[0].gpu, 2U);
  EXPECT_EQ(seen.rates[0].node, 1U);
  EXPECT_EQ(seen.rates[0].host, memory_kind::pinned);
  EXPECT_DOUBLE_EQ(seen.rates[0].gb_per_s, 24.5);
  EXPECT_EQ(seen.rates[1].way, direction::device_to_host);
  EXPECT_EQ(seen.rates[1].host, memory_kind::pageable);
  EXPECT_DOUBLE_EQ(seen.rates[1].gb_per_s, 6.5);
  // The next command is not bound.
  EXPECT_EQ(seen.rates[2].node, std::nullopt);
}

TEST(PastedBandwidthTest, IsReadAsCsvToo) {
  const auto seen = test::read_text(
      "numactl -N 1 -m 1 ./bandwidthTest --csv\n Device 0: Tesla V100-PCIE-32GB\n"
      "bandwidthTest-H2D-Pinned, Bandwidth = 0.4 GB/s, Time = 0.00000 s, Size = 1000 bytes, "
      "NumDevsUsed = 1\n"
      "bandwidthTest-H2D-Pinned, Bandwidth = 12147.6 MB/s, Time = 0.00263 s, Size = 33554432 "
      "bytes, "
      "NumDevsUsed = 1\n"
      "bandwidthTest-D2H-Paged, Bandwidth = 6.1 GB/s, Time = 0.00263 s, Size = 33554432 bytes, "
      "NumDevsUsed = 1\n"
      "bandwidthTest-D2D, Bandwidth = 700.1 GB/s, Time = 0.1 s, Size = 33554432 bytes, "
      "NumDevsUsed = 1\n"
      "bandwidthTest-H2D-Pinned, Bandwidth = \n");
  ASSERT_EQ(seen.rates.size(), 2U);
  EXPECT_NEAR(seen.rates[0].gb_per_s, 12.1476, 1e-9);
  EXPECT_EQ(seen.rates[0].node, 1U);
  EXPECT_EQ(seen.rates[1].host, memory_kind::pageable);
  EXPECT_EQ(seen.machine.gpus.at(0).model, "v100");
}

constexpr std::string_view two_sockets = R"(
          RocmBandwidthTest Version: 2.6.0
          Launch Command is: ./rocm-bandwidth-test
          Device: 0,  AMD EPYC 9554 64-Core Processor
          Device: 1,  AMD EPYC 9554 64-Core Processor
          Device: 2,  AMD Instinct MI210,  GPU-<id>,  05:0.0
          Device: 3,  AMD Instinct MI210,  GPU-<id>,  87:0.0

          Inter-Device Access
          D/D       0         1         2         3
          0         1         1         1         1
          1         1         1         1         1
          2         1         1         1         1
          3         1         1         0         1

          Inter-Device Numa Distance
          D/D       0         1         2         3
          0         0         32        20        52
          1         32        0         52        20
          2         20        52        0         72
          3         52        20        72        0

          Unidirectional copy peak bandwidth GB/s
          D/D       0           1           2           3
          0         N/A         N/A         28.264      28.223
          1         N/A         N/A         28.120      28.301
          2         27.901      27.888      1100.5      24.700
          3         27.912      27.893      24.701      1100.7

          Bidirectional copy peak bandwidth GB/s
          D/D       0           1           2           3
          0         N/A         N/A         45.1        45.2
)";

TEST(PastedRocmBandwidthTest, TellsGpusWeightsAndRates) {
  const auto seen = test::read_text(std::string(two_sockets));
  ASSERT_EQ(seen.machine.gpus.size(), 2U);
  EXPECT_EQ(seen.machine.gpus[1].pci_address, "0000:87:00.0");
  EXPECT_EQ(seen.machine.gpus[0].model, "mi210");
  EXPECT_EQ(seen.machine.gpus[0].numbered, machine::setting_state::off);
  EXPECT_EQ(test::gpu_link(seen, 0, 1)->weight, 72U);
  EXPECT_EQ(seen.unread_lines, 0U);
  const auto found = std::ranges::find_if(seen.rates, [](const machine::measured_rate& one) {
    return one.way == direction::host_to_device && one.gpu == 1U && one.node == 0U &&
           one.ways == traffic::one_way;
  });
  ASSERT_NE(found, seen.rates.end());
  EXPECT_DOUBLE_EQ(found->gb_per_s, 28.223);
  // A device's copies within itself are no link's.
  EXPECT_TRUE(std::ranges::none_of(
      seen.rates, [](const machine::measured_rate& one) { return one.gb_per_s > 1000; }));
  EXPECT_EQ(seen.rates.size(), 12U);
}

TEST(PastedRocmBandwidthTest, LeavesOutWhatIsNoNumberOrNoRow) {
  const auto seen = test::read_text(
      "Device: 0,  A CPU\nDevice: 1,  A GPU,  GPU-X,  c2:0.0\n"
      "Unidirectional copy peak bandwidth GB/s\nD/D 0 1\n0 N/A fast\n1 84.1\n2 N/A 3\n");
  EXPECT_TRUE(seen.rates.empty());
  EXPECT_TRUE(test::has_problem(seen, "\"fast\" is no rate"));
  EXPECT_TRUE(test::has_problem(seen, "1 cells for 2 columns"));
}

TEST(PastedCopyLog, CountsCopiesByEngineAndDirection) {
  const auto seen = test::read_text(
      ":3:hip_memory.cpp :642 : 1 us: [tid:0x7f] hipMemcpy ( 0x7f, 0x55, 40, "
      "hipMemcpyHostToDevice )\n"
      ":4:rocblit.cpp :707 : 2 us: 3: [tid:0x7f] HSA Async Copy on copy_engine=0x1, dst=0x7f, "
      "src=0x7f, size=40, forceSDMA=0\n"
      ":3:hip_memory.cpp :642 : 3 us: [tid:0x7f] hipMemcpy ( 0x7f, 0x55, 40, "
      "hipMemcpyDeviceToHost )\n"
      ":4:rocblit.cpp :707 : 4 us: 3: [tid:0x7f] HSA Async Copy on copy_engine=0x2, dst=0x7f\n"
      ":4:rocblit.cpp :707 : 5 us: 3: [tid:0x7f] HSA Async Copy on copy_engine=0x2, dst=0x7f\n"
      ":1:rocblit.cpp :736 : 6 us: 3: [tid:0x7f] HSA copy from device to host failed with code "
      "4104\n"
      ":3:rocvirtual.cpp :2 : 7 us: [tid:0x7f] ShaderName : __amd_rocclr_copyBuffer\n"
      ":3:rocvirtual.cpp :2 : 8 us: [tid:0x7f] ShaderName : my_kernel\n");
  ASSERT_EQ(seen.copies.size(), 4U);
  EXPECT_EQ(seen.copies[0].engine_name, "0x1");
  EXPECT_EQ(seen.copies[0].way, direction::host_to_device);
  EXPECT_EQ(seen.copies[1].way, direction::device_to_host);
  EXPECT_EQ(seen.copies[1].failure, std::nullopt);
  EXPECT_EQ(seen.copies[2].failure, 4104);
  EXPECT_EQ(seen.copies[2].engine_name, "0x2");
  EXPECT_EQ(seen.copies[3].by, engine::kernel);
  EXPECT_EQ(seen.unread_lines, 0U);
}

TEST(PastedNcclTree, TellsNodesAndFastLinks) {
  const auto seen = test::read_text(
      "node1:26:76 [0] NCCL INFO === System : maxBw 12.5 totalBw 72.0 ===\n"
      "node1:26:76 [0] NCCL INFO CPU/0-1 (1/2/4)\n"
      "node1:26:76 [0] NCCL INFO + SYS[16.0] - CPU/0-0\n"
      "node1:26:76 [0] NCCL INFO + PCI[24.0] - PCI/0-31000 (1000c01010000000)\n"
      "node1:26:76 [0] NCCL INFO               + PCI[24.0] - GPU/0-47000 (0)\n"
      "node1:26:76 [0] NCCL INFO                             + NVL[24.0] - GPU/0-4c000\n"
      "node1:26:76 [0] NCCL INFO               + PCI[24.0] - NIC/0-35000\n");
  ASSERT_EQ(seen.machine.gpus.size(), 2U);
  EXPECT_EQ(seen.machine.gpus[0].pci_address, "0000:47:00.0");
  EXPECT_EQ(seen.machine.gpus[0].numa_node, 1U);
  EXPECT_EQ(seen.machine.gpus[0].made_by, machine::vendor::nvidia);
  EXPECT_EQ(seen.machine.gpus[1].numa_node, std::nullopt);
  EXPECT_EQ(test::gpu_link(seen, 0, 1)->kind, link_kind::nvlink);
  EXPECT_EQ(test::gpu_link(seen, 0, 1)->nominal_gb_per_s, std::nullopt);
  EXPECT_EQ(seen.unread_lines, 0U);
}

TEST(PastedProse, TellsRatesWithTheirPromise) {
  const auto seen = test::read_text(
      "Speed between GPU and CPU is about 20 GB/s but should be about 32 GB/s\n"
      "From the remote socket the host to GPU copy gets 9GB/s\n");
  ASSERT_EQ(seen.rates.size(), 2U);
  EXPECT_DOUBLE_EQ(seen.rates[0].gb_per_s, 20);
  EXPECT_EQ(seen.rates[0].promised_gb_per_s, 32);
  EXPECT_EQ(seen.rates[0].ways, traffic::one_way);
  EXPECT_EQ(seen.rates[1].host_is, host_distance::far);
}

TEST(PastedProse, TakesAPromiseInFrontOfTheMeasurement) {
  const auto seen = test::read_text(
      "H2D should be 32 GB/s but I only get 12.5GB/s\n"
      "It is expected to be 64 GB/s and should be 60 GB/s between CPU and GPU\n");
  ASSERT_EQ(seen.rates.size(), 1U);
  EXPECT_DOUBLE_EQ(seen.rates[0].gb_per_s, 12.5);
  EXPECT_EQ(seen.rates[0].promised_gb_per_s, 32);
  EXPECT_EQ(seen.rates[0].way, direction::host_to_device);
}

// What is promised, what is of something else, and what is no sentence.
TEST(PastedProse, IsNotTakenForAMeasurementWhereItIsNone) {
  const auto seen = test::read_text(
      "The GPU's theoretical peak is 1600 GB/s\nthe disk of the GPU node is at 7 GB/s\n"
      "GPU GPU 70GB/s\nIt should be 32 GB/s between CPU and GPU\n");
  EXPECT_TRUE(seen.rates.empty());
}

TEST(PastedTableOfLinks, JudgesTheLinkToTheHost) {
  const auto seen = test::read_text(
      "| Device | Card to switch | Switch to CPU |\n|---|---|---|\n"
      "| AMD Navi 21 | Speed 16GT/s, Width x16 | Speed 16GT/s, Width x12 (downgraded) |\n");
  ASSERT_EQ(seen.machine.gpus.size(), 1U);
  const auto& way = seen.machine.gpus[0].pci_path;
  ASSERT_EQ(way.size(), 3U);
  EXPECT_EQ(way[2].trained.width, 12U);
  EXPECT_EQ(way[2].width_downgraded, machine::setting_state::on);
  EXPECT_EQ(way[2].speed_downgraded, machine::setting_state::unknown);
  const auto plain = test::read_text("| NVIDIA A100 | 16.0 GT/s x8 |\n| AMD CPU | fast |\n");
  ASSERT_EQ(plain.machine.gpus.size(), 1U);
  EXPECT_EQ(plain.machine.gpus[0].trained_link.width, 8U);
}

}  // namespace
}  // namespace berth::topology
