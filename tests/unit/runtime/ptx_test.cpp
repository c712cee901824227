// SPDX-License-Identifier: Apache-2.0
// The embedded PTX is what nvcc makes of the source. Skipped and counted where nvcc is not, or is
// of another version than made it.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/cuda/kernels.hpp"
#include "runtime/hip/kernels.hpp"

namespace berth::runtime {
namespace {

using ::testing::HasSubstr;

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

const std::string source_folder = BERTH_SOURCE_DIR "/src/runtime/";

TEST(embedded, kernels_are_the_files_of_the_source) {
  EXPECT_EQ(cuda::kernel_ptx(), read(source_folder + "cuda/builtin_kernels.ptx"));
  EXPECT_EQ(hip::kernel_source(), read(source_folder + "builtin_kernels.cu"));
  EXPECT_EQ(cuda::kernel_ptx().data()[cuda::kernel_ptx().size()], '\0');
}

TEST(embedded, ptx_has_every_kernel_and_asks_for_an_old_driver_and_gpu) {
  const std::string ptx(cuda::kernel_ptx());
  for (const char* name : kernel_names) {
    EXPECT_THAT(ptx, HasSubstr(std::string(".visible .entry ") + name + "("));
  }
  EXPECT_THAT(ptx, HasSubstr(".version 6.0\n.target sm_50\n"));
}

std::string output_of(const std::string& command) {
  std::string text;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  for (int c = 0; pipe != nullptr && (c = std::fgetc(pipe.get())) != EOF;) {
    text += static_cast<char>(c);
  }
  return text;
}

// "V13.0.88" of "... release 13.0, V13.0.88"
std::string compiler_version(const std::string& text) {
  const auto at = text.find(", V");
  return at == std::string::npos ? ""
                                 : text.substr(at + 2, text.find_first_of(" \n", at + 2) - at - 2);
}

TEST(embedded, ptx_is_what_nvcc_makes_of_the_source) {
  const std::string nvcc = "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)";
  const std::string present = compiler_version(output_of(nvcc + " --version 2>/dev/null"));
  const std::string made_by = compiler_version(std::string(cuda::kernel_ptx()));
  ASSERT_NE(made_by, "");
  if (present != made_by) {
    GTEST_SKIP() << "made by nvcc " << made_by << ", here is "
                 << (present.empty() ? "none" : present);
  }
  const std::string remade = ::testing::TempDir() + "/berth_remade.ptx";
  ASSERT_EQ(std::system((BERTH_SOURCE_DIR "/scripts/make-ptx.sh " + remade).c_str()), 0);
  EXPECT_EQ(read(remade), cuda::kernel_ptx()) << "run scripts/make-ptx.sh";
  std::remove(remade.c_str());
}

}  // namespace
}  // namespace berth::runtime
