// SPDX-License-Identifier: Apache-2.0
// What a program may rely on in copies of pageable memory, by each form of the call: order in the
// stream, when a source may change and a result is there, statuses of calls that are refused. What
// it prints must be the same whoever makes the copies.
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "program.hpp"

namespace {

constexpr std::size_t large = (6UL << 20U) + 4097;

using bytes = std::vector<unsigned char>;

void blocking_forms(unsigned char* device) {
  const auto source = program::pattern(large, 1);
  for (const auto kind : {hipMemcpyHostToDevice, hipMemcpyDefault}) {
    CHECK(hipMemset(device, 0, large));
    CHECK(hipMemcpy(device, source.data(), large, kind));
    bytes result(large);
    CHECK(hipMemcpy(result.data(), device, large,
                    kind == hipMemcpyDefault ? kind : hipMemcpyDeviceToHost));
    REQUIRE(result == source);
  }
  CHECK(hipMemcpyHtoD(device + 1, const_cast<unsigned char*>(source.data()), large - 1));
  bytes result(large);
  CHECK(hipMemcpyDtoH(result.data(), device + 1, large - 1));
  REQUIRE(std::memcmp(result.data(), source.data(), large - 1) == 0);
  CHECK(hipMemcpyWithStream(device, source.data(), large, hipMemcpyHostToDevice, nullptr));
  CHECK(hipMemcpyWithStream(result.data(), device, large, hipMemcpyDeviceToHost, nullptr));
  REQUIRE(result == source);
  std::printf("blocking forms: right\n");
}

// The source changes as soon as the call has returned; fills before and after keep their place.
void queued_in_order(unsigned char* device, hipStream_t stream, const char* name) {
  for (unsigned round = 0; round < 8; ++round) {
    auto source = program::pattern(large, round);
    CHECK(hipMemsetAsync(device, 0xEE, large, stream));
    CHECK(hipMemcpyAsync(device, source.data(), large, hipMemcpyHostToDevice, stream));
    std::memset(source.data(), 0x11, large);
    CHECK(hipMemsetAsync(device + 100, 0x77, 1000, stream));
    bytes result(large, 0x22);
    CHECK(hipMemcpyAsync(result.data(), device, large, hipMemcpyDeviceToHost, stream));
    // Both runtimes return when the data is there.
    auto expected = program::pattern(large, round);
    std::memset(expected.data() + 100, 0x77, 1000);
    REQUIRE(result == expected);
    CHECK(hipMemsetAsync(device, 0x33, large, stream));
  }
  CHECK(hipStreamSynchronize(stream));
  std::printf("%s: in order\n", name);
}

struct shape {
  std::size_t width;
  std::size_t rows;
  std::size_t host_pitch;
  std::size_t device_pitch;
};

// Rows there and back, in stream order; what lies between them stays as it was.
void by_rows(const shape& of, hipStream_t stream) {
  const std::size_t host_bytes = of.host_pitch * of.rows;
  auto* const device = program::device_memory(of.device_pitch * of.rows);
  auto source = program::pattern(host_bytes, 7);
  CHECK(hipMemsetAsync(device, 0x55, of.device_pitch * of.rows, stream));
  CHECK(hipMemcpy2DAsync(device, of.device_pitch, source.data(), of.host_pitch, of.width, of.rows,
                         hipMemcpyHostToDevice, stream));
  std::memset(source.data(), 0x11, source.size());
  bytes result(host_bytes, 0x22);
  CHECK(hipMemcpy2DAsync(result.data(), of.host_pitch, device, of.device_pitch, of.width, of.rows,
                         hipMemcpyDeviceToHost, stream));
  auto expected = program::pattern(host_bytes, 7);
  for (std::size_t row = 0; row < of.rows; ++row) {
    std::memset(expected.data() + row * of.host_pitch + of.width, 0x22, of.host_pitch - of.width);
  }
  REQUIRE(result == expected);
  std::fill(result.begin(), result.end(), static_cast<unsigned char>(0x22));
  CHECK(hipMemcpy2D(result.data(), of.host_pitch, device, of.device_pitch, of.width, of.rows,
                    hipMemcpyDeviceToHost));
  REQUIRE(result == expected);
  CHECK(hipMemcpy2D(device, of.device_pitch, result.data(), of.host_pitch, of.width, of.rows,
                    hipMemcpyHostToDevice));
  bytes gaps(of.device_pitch * of.rows);
  CHECK(hipMemcpy(gaps.data(), device, gaps.size(), hipMemcpyDeviceToHost));
  for (std::size_t row = 0; row < of.rows; ++row) {
    REQUIRE(std::memcmp(gaps.data() + row * of.device_pitch, expected.data() + row * of.host_pitch,
                        of.width) == 0);
    for (std::size_t at = of.width; at < of.device_pitch; ++at) {
      REQUIRE(gaps[row * of.device_pitch + at] == 0x55);
    }
  }
  CHECK(hipFree(device));
}

void row_forms(hipStream_t stream) {
  constexpr std::size_t megabyte = 1UL << 20U;
  by_rows({12000, 250, 12000, 12288}, stream);
  by_rows({12000, 250, 12288, 12000}, stream);
  by_rows({12288, 250, 12288, 12288}, stream);  // no gaps at all
  by_rows({3 * megabyte, 1, 4 * megabyte, 4 * megabyte}, stream);
  by_rows({9 * megabyte, 2, 9 * megabyte + 64, 9 * megabyte + 256}, stream);
  std::printf("rows: right\n");
}

// Work of another stream that an event puts in front of the copy.
void after_an_event(unsigned char* device, hipStream_t first, hipStream_t second) {
  hipEvent_t event = nullptr;
  CHECK(hipEventCreateWithFlags(&event, hipEventDisableTiming));
  bytes result(large);
  for (int round = 0; round < 4; ++round) {
    CHECK(hipMemsetAsync(device, 0x40 + round, large, first));
    CHECK(hipEventRecord(event, first));
    CHECK(hipStreamWaitEvent(second, event, 0));
    CHECK(hipMemcpyAsync(result.data(), device, large, hipMemcpyDeviceToHost, second));
    REQUIRE(result == bytes(large, static_cast<unsigned char>(0x40 + round)));
  }
  CHECK(hipEventDestroy(event));
  std::printf("events: in order\n");
}

void refused_calls(unsigned char* device) {
  bytes host(large);
  const auto say = [](const char* what, hipError_t answer) {
    std::printf("%s: %d, last error %d\n", what, static_cast<int>(answer),
                static_cast<int>(hipGetLastError()));
  };
  say("unknown kind", hipMemcpy(device, host.data(), large, static_cast<hipMemcpyKind>(77)));
  say("null source", hipMemcpy(device, nullptr, large, hipMemcpyHostToDevice));
  say("null destination", hipMemcpy(nullptr, host.data(), large, hipMemcpyHostToDevice));
  say("beyond the end", hipMemcpy(device + large - 10, host.data(), large, hipMemcpyHostToDevice));
  say("both on the host",
      hipMemcpy(host.data(), host.data() + large / 2, large / 2, hipMemcpyHostToHost));
  say("the other way", hipMemcpy(device, host.data(), large, hipMemcpyDeviceToHost));
  say("rows in each other",
      hipMemcpy2D(device, 4096, host.data(), 2048, 4096, 1000, hipMemcpyHostToDevice));
  say("rows beyond the end",
      hipMemcpy2D(device, 8192, host.data(), 4096, 4096, 1000, hipMemcpyHostToDevice));
  say("right", hipMemcpy(device, host.data(), large, hipMemcpyHostToDevice));
}

void many_threads() {
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < 4; ++number) {
    threads.emplace_back([number] {
      auto* const device = program::device_memory(large);
      hipStream_t stream = nullptr;
      CHECK(hipStreamCreate(&stream));
      for (unsigned round = 0; round < 4; ++round) {
        const auto source = program::pattern(large, number * 100 + round);
        bytes result(large);
        CHECK(hipMemcpyAsync(device, source.data(), large, hipMemcpyHostToDevice, stream));
        CHECK(hipMemcpyAsync(result.data(), device, large, hipMemcpyDeviceToHost, stream));
        REQUIRE(result == source);
      }
      CHECK(hipStreamDestroy(stream));
      CHECK(hipFree(device));
    });
  }
  for (auto& one : threads) {
    one.join();
  }
  std::printf("threads: right\n");
}

// The child has neither engine nor runtime, and ends as ever.
void fork_and_exit() {
  std::fflush(stdout);
  const auto child = ::fork();
  if (child == 0) {
    std::exit(5);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  std::printf("child: %d\n", WEXITSTATUS(status));
}

}  // namespace

int main() {
  auto* const device = program::device_memory(large);
  hipStream_t blocking = nullptr;
  hipStream_t other = nullptr;
  CHECK(hipStreamCreate(&blocking));
  CHECK(hipStreamCreateWithFlags(&other, hipStreamNonBlocking));
  blocking_forms(device);
  queued_in_order(device, nullptr, "default stream");
  queued_in_order(device, blocking, "blocking stream");
  queued_in_order(device, other, "non-blocking stream");
  row_forms(nullptr);
  row_forms(other);
  after_an_event(device, blocking, other);
  refused_calls(device);
  many_threads();
  fork_and_exit();
  blocking_forms(device);
  CHECK(hipStreamDestroy(blocking));
  CHECK(hipStreamDestroy(other));
  CHECK(hipFree(device));
}
