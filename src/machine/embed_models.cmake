# SPDX-License-Identifier: Apache-2.0
# cmake -DMODELS=<folder> -DOUTPUT=<file.cpp> -P embed_models.cmake
# Writes the texts of all MODELS/*.json as one C++ source.
file(GLOB files "${MODELS}/*.json")
list(SORT files)
list(LENGTH files count)
set(rows "")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME)
  file(READ "${file}" text)
  string(APPEND rows "    embedded_model{\"${name}\", R\"model(${text})model\"},\n")
endforeach()
file(WRITE "${OUTPUT}.new" "// Generated from src/machine/models by embed_models.cmake.
#include \"machine/embedded_models.hpp\"

#include <array>

namespace berth::machine {
namespace {

constexpr std::array<embedded_model, ${count}> texts{
${rows}};

}  // namespace

std::span<const embedded_model> embedded_models() noexcept {
  return texts;
}

}  // namespace berth::machine
")
file(COPY_FILE "${OUTPUT}.new" "${OUTPUT}" ONLY_IF_DIFFERENT)
file(REMOVE "${OUTPUT}.new")
