// SPDX-License-Identifier: Apache-2.0
#include "runtime/status.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace berth::runtime {
namespace {

struct meaning {
  int first;
  int last;
  errc code;
};

// Ascending; ranges without overlap.
constexpr std::array meanings{
    meaning{1, 1, errc::gpu_invalid_value},
    meaning{2, 2, errc::gpu_out_of_memory},
    meaning{3, 3, errc::gpu_runtime_unusable},  // not initialised
    meaning{4, 4, errc::gpu_shut_down},
    meaning{9, 9, errc::gpu_launch_failed},         // invalid configuration
    meaning{12, 12, errc::gpu_invalid_value},       // pitch
    meaning{17, 17, errc::gpu_invalid_value},       // device pointer
    meaning{21, 21, errc::gpu_invalid_value},       // copy direction
    meaning{34, 36, errc::gpu_runtime_unusable},    // stub library, insufficient driver
    meaning{46, 46, errc::gpu_not_permitted},       // exclusive to another process
    meaning{53, 53, errc::gpu_device_lost},         // prior launch failure
    meaning{98, 98, errc::gpu_kernel_unavailable},  // invalid device function
    meaning{100, 100, errc::gpu_no_device},
    meaning{101, 101, errc::gpu_device_out_of_range},
    meaning{102, 102, errc::gpu_not_permitted},       // not licensed
    meaning{200, 200, errc::gpu_kernel_unavailable},  // invalid image
    meaning{201, 201, errc::gpu_invalid_handle},      // invalid context
    meaning{209, 209, errc::gpu_kernel_unavailable},  // no binary for this GPU
    meaning{214, 214, errc::gpu_device_lost},         // uncorrectable ECC error
    meaning{215, 215, errc::gpu_not_supported},
    meaning{217, 217, errc::gpu_not_supported},       // peer access
    meaning{218, 218, errc::gpu_kernel_unavailable},  // invalid PTX
    meaning{220, 220, errc::gpu_device_lost},         // uncorrectable NVLink error
    meaning{221, 223, errc::gpu_kernel_unavailable},  // JIT compiler
    meaning{226, 226, errc::gpu_device_lost},
    meaning{300, 303, errc::gpu_kernel_unavailable},
    meaning{304, 304, errc::gpu_not_permitted},  // the operating system refused
    meaning{400, 400, errc::gpu_invalid_handle},
    meaning{401, 401, errc::gpu_invalid_value},       // illegal state
    meaning{500, 500, errc::gpu_kernel_unavailable},  // name not found
    meaning{600, 600, errc::gpu_not_ready},
    meaning{700, 700, errc::gpu_device_lost},  // illegal address
    meaning{701, 701, errc::gpu_launch_failed},
    meaning{702, 702, errc::gpu_device_lost},    // launch timeout
    meaning{709, 710, errc::gpu_device_lost},    // context destroyed, assertion
    meaning{711, 711, errc::gpu_not_supported},  // too many peers
    meaning{712, 712, errc::gpu_already_registered},
    meaning{713, 713, errc::gpu_not_registered},
    meaning{714, 719, errc::gpu_device_lost},  // faults of a kernel
    meaning{720, 720, errc::gpu_launch_failed},
    meaning{721, 721, errc::gpu_device_lost},
    meaning{800, 800, errc::gpu_not_permitted},
    meaning{801, 801, errc::gpu_not_supported},
    meaning{802, 804, errc::gpu_runtime_unusable},  // kernel driver not ready or of another version
    meaning{805, 810, errc::gpu_not_permitted},     // MPS
    meaning{900, 908, errc::gpu_capture},
};

std::string answer(std::string_view status_name, int status) {
  return fmt::format("the runtime answered {} ({})", status_name, status);
}

}  // namespace

errc errc_of_status(int status) noexcept {
  const auto found = std::find_if(meanings.begin(), meanings.end(), [status](const meaning& row) {
    return status >= row.first && status <= row.last;
  });
  return found != meanings.end() ? found->code : errc::gpu_unexpected;
}

error failed_call(std::string_view call, std::string_view status_name, int status) {
  return error(errc_of_status(status), answer(status_name, status), std::string(call));
}

error failed_allocation(std::string_view call, std::string_view status_name, int status,
                        const memory_shortage& amounts) {
  std::string message = fmt::format("{} do not fit", format_bytes(amounts.requested));
  if (amounts.free && amounts.total) {
    message += fmt::format(" into {} free of {}", format_bytes(*amounts.free),
                           format_bytes(*amounts.total));
  }
  message += "; " + answer(status_name, status);
  return error(errc::gpu_out_of_memory, std::move(message), std::string(call)).with(amounts);
}

memory_shortage host_shortage(bytes_t requested) noexcept {
  memory_shortage amounts{.requested = requested, .free = std::nullopt, .total = std::nullopt};
  const long page = sysconf(_SC_PAGESIZE);
  const long free = sysconf(_SC_AVPHYS_PAGES);
  const long total = sysconf(_SC_PHYS_PAGES);
  if (page > 0 && free >= 0 && total > 0) {
    amounts.free = static_cast<bytes_t>(free) * static_cast<bytes_t>(page);
    amounts.total = static_cast<bytes_t>(total) * static_cast<bytes_t>(page);
  }
  return amounts;
}

error device_out_of_range(int device, std::size_t count) {
  return error(errc::gpu_device_out_of_range,
               fmt::format("no device {}: there {} {}, counted from 0", device,
                           count == 1 ? "is" : "are", count));
}

error nothing_requested(std::string_view operation) {
  return error(errc::gpu_invalid_value, "0 bytes requested", std::string(operation));
}

result<void> checked_shape(const copy_2d& what) {
  if (what.dst_pitch < what.width || what.src_pitch < what.width) {
    return error(errc::gpu_invalid_value,
                 fmt::format("pitches {} and {} must be at least the width {}", what.dst_pitch,
                             what.src_pitch, what.width),
                 "copy_2d");
  }
  return {};
}

error not_supported(std::string_view operation, std::string_view why) {
  return error(errc::gpu_not_supported, std::string(why), std::string(operation));
}

}  // namespace berth::runtime
