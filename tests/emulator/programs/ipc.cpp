// SPDX-License-Identifier: Apache-2.0
// Two processes with one piece of device memory: the child writes what the parent reads.
#include <sys/wait.h>
#include <unistd.h>
#include <string>

#include "program.hpp"

namespace {

constexpr std::size_t bytes = 4UL << 20U;

std::string hexadecimal(const hipIpcMemHandle_t& handle) {
  std::string text;
  for (const char one : handle.reserved) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(one));
    text += digits;
  }
  return text;
}

int be_the_child(const char* text) {
  hipIpcMemHandle_t handle{};
  for (std::size_t i = 0; i < sizeof(handle.reserved); ++i) {
    handle.reserved[i] = static_cast<char>(std::stoul(std::string(text + 2 * i, 2), nullptr, 16));
  }
  unsigned char* memory = nullptr;
  CHECK(hipIpcOpenMemHandle(reinterpret_cast<void**>(&memory), handle,
                            hipIpcMemLazyEnablePeerAccess));
  std::vector<unsigned char> seen(bytes);
  CHECK(hipMemcpy(seen.data(), memory, bytes, hipMemcpyDeviceToHost));
  program::did_copy(program::to_host, bytes);
  REQUIRE(program::has_pattern(seen.data(), bytes, 11));
  program::write_pattern(seen.data(), bytes, 12);
  CHECK(hipMemcpy(memory, seen.data(), bytes, hipMemcpyHostToDevice));
  program::did_copy(program::to_device, bytes);
  CHECK(hipIpcCloseMemHandle(memory));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    return be_the_child(argv[1]);
  }
  auto* const memory = program::device_memory(bytes);
  const auto source = program::pattern(bytes, 11);
  CHECK(hipMemcpy(memory, source.data(), bytes, hipMemcpyHostToDevice));
  program::did_copy(program::to_device, bytes);
  hipIpcMemHandle_t handle{};
  CHECK(hipIpcGetMemHandle(&handle, memory));
  std::fflush(stdout);
  const auto text = hexadecimal(handle);
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", argv[0], text.c_str(), static_cast<char*>(nullptr));
    _exit(9);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child && status == 0);
  std::vector<unsigned char> seen(bytes);
  CHECK(hipMemcpy(seen.data(), memory, bytes, hipMemcpyDeviceToHost));
  program::did_copy(program::to_host, bytes);
  REQUIRE(program::has_pattern(seen.data(), bytes, 12));
  CHECK(hipFree(memory));
}
