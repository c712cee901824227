// SPDX-License-Identifier: Apache-2.0
// Which frames of a stack are shown as the place of a call.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "diagnose/frames.hpp"

namespace berth::test {
namespace {

using diagnose::frame_owner;
using diagnose::owner_of_frame;

std::string place_of(const std::vector<std::string>& frames) {
  trace::trace events;
  trace::call_site site;
  for (const auto& frame : frames) {
    site.frames.push_back(events.intern(frame));
  }
  return diagnose::describe(events, diagnose::place_in(events, site));
}

struct owned {
  std::string_view frame;
  frame_owner owner;
};

class frames : public testing::TestWithParam<owned> {};

TEST_P(frames, have_an_owner) {
  EXPECT_EQ(owner_of_frame(GetParam().frame), GetParam().owner) << GetParam().frame;
}

INSTANTIATE_TEST_SUITE_P(
    of_all_kinds, frames,
    testing::Values(
        owned{"libcudart_static_e760a7280bc1af45ef561886abc194823c5edadb in three_symptoms",
              frame_owner::runtime},
        owned{"cudaMemcpy in three_symptoms", frame_owner::runtime},
        owned{"cudaMemcpyAsync in runtime.cpython-312-x86_64-linux-gnu.so", frame_owner::runtime},
        owned{"libcudart.so.13+0x42319", frame_owner::runtime},
        owned{"cuMemcpyHtoD_v2 in libcuda.so.1", frame_owner::runtime},
        owned{"hipMemcpy in libamdhip64.so.6", frame_owner::runtime},
        owned{"libhsa-runtime64.so.1+0x12", frame_owner::runtime},
        owned{"libcupti.so.13+0x12", frame_owner::runtime},
        owned{"at::native::copy_kernel_cuda in libtorch_cuda.so", frame_owner::framework},
        owned{"xla_cuda_plugin.so+0x67760e2", frame_owner::framework},
        owned{"cublasCreate_v2 in libcublas.so.13", frame_owner::framework},
        owned{"torch/nn/modules/module.py(1): _call_impl", frame_owner::framework},
        owned{"python3.12+0x151418", frame_owner::interpreter},
        owned{"_PyEval_EvalFrameDefault in python3.12", frame_owner::interpreter},
        owned{"_PyEval_EvalFrameDefault (ceval.c:3125)", frame_owner::interpreter},
        owned{"libpython3.11.so.1.0+0x12", frame_owner::interpreter},
        owned{"node+0x12", frame_owner::interpreter},
        owned{"libjvm.so+0x12", frame_owner::interpreter},
        owned{"libc.so.6+0x2a1ca", frame_owner::start_up},
        owned{"_start in three_symptoms", frame_owner::start_up},
        owned{"std::thread::_State_impl::_M_run in libstdc++.so.6", frame_owner::start_up}));

INSTANTIATE_TEST_SUITE_P(of_programs, frames,
                         testing::Values(owned{"upload (model.cpp:12)", frame_owner::program},
                                         owned{"main in three_symptoms", frame_owner::program},
                                         owned{"three_symptoms+0x3f211", frame_owner::program},
                                         owned{"train.py(12): step", frame_owner::program},
                                         // Names that begin like others' are not theirs.
                                         owned{"node_trainer+0x12", frame_owner::program},
                                         owned{"run in python_bridge", frame_owner::program},
                                         owned{"cudaUpload (model.cpp:12)", frame_owner::program},
                                         owned{"hipster in app", frame_owner::program},
                                         owned{"cuda::upload in app", frame_owner::program},
                                         owned{"0x7f0012345678", frame_owner::program},
                                         owned{"", frame_owner::program}));

TEST(place, is_no_frame_of_a_runtime_that_is_linked_into_the_program) {
  EXPECT_EQ(place_of({"libcudart_static_e760 in three_symptoms", "cudaMemcpy in three_symptoms",
                      "(anonymous namespace)::pageable in three_symptoms", "main in three_symptoms",
                      "libc.so.6+0x2a1ca", "_start in three_symptoms"}),
            "(anonymous namespace)::pageable in three_symptoms");
}

TEST(place, of_a_python_program_is_the_framework_s_function) {
  EXPECT_EQ(
      place_of({"libcudart.so.13+0x42319", "at::native::copy_kernel_cuda in libtorch_cuda.so",
                "at::_ops::_to_copy::call in libtorch_cpu.so",
                "torch::autograd::THPVariable_to in libtorch_python.so", "python3.12+0x151418",
                "python3.12+0x1499b5", "libc.so.6+0x2a1ca"}),
      "at::native::copy_kernel_cuda in libtorch_cuda.so (from torch::autograd::THPVariable_to in "
      "libtorch_python.so)");
}

TEST(place, without_symbols_is_the_innermost_library) {
  EXPECT_EQ(place_of({"libcudart.so.13+0x42319", "libtorch_cuda.so+0x17abd30",
                      "libtorch_cpu.so+0x1e4baad", "python3.12+0x151418", "libc.so.6+0x2a1ca"}),
            "libtorch_cuda.so+0x17abd30");
}

TEST(place, of_the_program_goes_before_a_framework) {
  EXPECT_EQ(place_of({"libamdhip64.so.6+0x1", "at::copy_ in libtorch_cpu.so",
                      "upload (model.cpp:12)", "main (main.cpp:3)"}),
            "upload (model.cpp:12)");
}

TEST(place, in_a_library_names_who_called_it) {
  EXPECT_EQ(place_of({"cudaMemcpy in libcudart.so.13", "upload in libmodel.so",
                      "run_epoch in trainer", "main in trainer"}),
            "upload in libmodel.so (from run_epoch in trainer)");
}

TEST(place, of_a_stack_without_any_is_empty) {
  EXPECT_EQ(place_of({}), "");
  EXPECT_EQ(place_of({"libcuda.so.1+0x12", "python3+0x12", "libc.so.6+0x12"}), "");
}

}  // namespace
}  // namespace berth::test
