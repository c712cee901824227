// SPDX-License-Identifier: Apache-2.0
#include "transfer/checks.hpp"

#include <fmt/format.h>

#include "runtime/page_probe.hpp"

namespace berth::transfer {

std::string words_for(const copy_range& ends) {
  return fmt::format("copy of {} bytes from {} to {}", ends.bytes, ends.src, ends.dst);
}

result<void> check_apart(const copy_range& ends) {
  const auto dst = reinterpret_cast<std::uintptr_t>(ends.dst);
  const auto src = reinterpret_cast<std::uintptr_t>(ends.src);
  if (dst >= src + ends.bytes || src >= dst + ends.bytes) {
    return {};
  }
  return error(errc::transfer_overlap, "source and destination overlap", words_for(ends),
               "copy by way of another buffer");
}

result<void> check_range(const runtime::pointer_info& where, const void* first,
                         const copy_range& ends, std::string_view end) {
  if (where.base == nullptr || !where.bytes) {
    return {};
  }
  const auto offset = static_cast<bytes_t>(static_cast<const std::byte*>(first) -
                                           static_cast<const std::byte*>(where.base));
  if (offset <= *where.bytes && ends.bytes <= *where.bytes - offset) {
    return {};
  }
  return error(errc::transfer_out_of_range,
               fmt::format("the {} is {} memory of {} bytes from {}, and the copy would reach {} "
                           "bytes beyond its end",
                           end, to_string(where.kind), *where.bytes, where.base,
                           offset + ends.bytes - *where.bytes),
               words_for(ends), "check the length: it is in bytes");
}

result<void> check_host_end(const copy_range& ends, direction way) {
  const bool reads = way == direction::host_to_device;
  auto* const host = host_end(ends, way);
  const bool usable =
      runtime::is_mapped(host, ends.bytes) &&
      (reads ? runtime::is_readable(host, ends.bytes) : runtime::is_writable(host, ends.bytes));
  if (usable) {
    return {};
  }
  return error(errc::transfer_unmapped,
               fmt::format("a part of the host memory is not mapped, or cannot be {}",
                           reads ? "read" : "written"),
               words_for(ends), "check that the memory is still allocated, and its protection");
}

}  // namespace berth::transfer
