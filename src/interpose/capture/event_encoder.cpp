// SPDX-License-Identifier: Apache-2.0
#include "interpose/capture/event_encoder.hpp"

#include <array>

namespace berth::interpose {
namespace {

using trace::recording::byte_writer;

constexpr auto schemas = [] {
  std::array<call_schema, call_count> made{};
  for (std::size_t index = 0; index < call_count; ++index) {
    made[index] = schema_of(static_cast<call_id>(index));
  }
  return made;
}();

// Roles that only records have are numbered behind those of the calls.
constexpr std::size_t name_role = role_count;
constexpr std::size_t correlation_role = role_count + 1;
constexpr std::size_t value_role = role_count + 2;
constexpr std::array<std::string_view, 3> more_role_names{"name", "correlation", "value"};

constexpr std::string_view name_of(std::size_t one) noexcept {
  return one < role_count ? role_names[one] : more_role_names[one - role_count];
}
constexpr std::size_t number_of(role one) noexcept {
  return static_cast<std::size_t>(one);
}

struct record_row {
  std::string_view name;
  std::string_view api;
  std::string_view operation;
  std::array<std::size_t, 7> roles;
  std::size_t count;
};

constexpr std::array<record_row, record_count> records{{
    {"device copy",
     "device",
     "copy",
     {number_of(role::device), number_of(role::stream), number_of(role::bytes),
      number_of(role::way), number_of(role::dst_memory), number_of(role::src_memory),
      correlation_role},
     7},
    {"device fill",
     "device",
     "fill",
     {number_of(role::device), number_of(role::stream), number_of(role::bytes), correlation_role},
     4},
    {"device kernel",
     "device",
     "kernel",
     {number_of(role::device), number_of(role::stream), name_role, correlation_role},
     4},
    {"device migration",
     "device",
     "migration",
     {number_of(role::device), number_of(role::stream), number_of(role::bytes),
      number_of(role::way), number_of(role::memory)},
     5},
    {"window", "berth", "window", {value_role}, 1},
}};

void put_call(byte_writer& to, std::size_t index, std::string_view name, std::string_view api,
              std::string_view operation, std::size_t roles) noexcept {
  to.put_varint(index);
  to.put_string(name);
  to.put_string(api);
  to.put_string(operation);
  to.put_varint(roles);
}

constexpr std::size_t recorded_calls = [] {
  std::size_t found = 0;
  for (std::size_t index = 1; index < call_count; ++index) {
    found += is_recorded(static_cast<call_id>(index)) ? std::size_t{1} : std::size_t{0};
  }
  return found;
}();

constexpr std::array<bool, call_count> recorded = [] {
  std::array<bool, call_count> made{};
  for (std::size_t index = 1; index < call_count; ++index) {
    made[index] = is_recorded(static_cast<call_id>(index));
  }
  return made;
}();

}  // namespace

void put_calls(byte_writer& to) noexcept {
  to.put_varint(1 + recorded_calls + record_count);
  put_call(to, 0, "", "berth", "extras", extra_roles.size());
  for (const role one : extra_roles) {
    to.put_string(name_of(number_of(one)));
  }
  for (std::size_t index = 1; index < call_count; ++index) {
    if (!recorded[index]) {
      continue;
    }
    const auto& row = call_rows[index];
    const auto& schema = schemas[index];
    put_call(to, index, row.name, row.api == api::hip ? "hip" : "cuda", row.operation,
             schema.count);
    for (std::size_t at = 0; at < schema.count; ++at) {
      to.put_string(name_of(number_of(schema.roles[at])));
    }
  }
  for (std::size_t index = 0; index < record_count; ++index) {
    const auto& row = records[index];
    put_call(to, call_count + index, row.name, row.api, row.operation, row.count);
    for (std::size_t at = 0; at < row.count; ++at) {
      to.put_string(name_of(row.roles[at]));
    }
  }
}

event_encoder::event_encoder(byte_writer& to, std::uint32_t thread, std::uint64_t base) noexcept
    : to_(to), begin_(base) {
  to_.put_varint(thread);
  to_.put_signed(static_cast<std::int64_t>(base));
}

void event_encoder::put_head(std::size_t call, std::uint64_t begin, std::uint64_t duration,
                             std::uint64_t flags) noexcept {
  to_.put_varint(call);
  to_.put_signed(static_cast<std::int64_t>(begin - begin_));
  to_.put_varint(duration);
  to_.put_varint(flags);
  begin_ = begin;
}

void event_encoder::put_value(std::size_t one, std::uint64_t value) noexcept {
  to_.put_signed(values_.difference(one, value));
}

void event_encoder::put(const raw_event& event, std::uint64_t begin_ns,
                        std::uint64_t duration_ns) noexcept {
  struct extra {
    std::size_t index;
    role which;
    std::uint64_t value;
  };
  std::array<extra, extra_roles.size()> extras{};
  std::size_t count = 0;
  const auto add = [&](std::size_t index, std::uint64_t value) {
    extras[count++] = {index, extra_roles[index], value};
  };
  if (event.stack != 0) {
    add(0, event.stack);
  }
  if (event.pages != host_pages::unknown) {
    add(1, static_cast<std::uint64_t>(event.pages));
  }
  if (event.host_node >= 0) {
    add(2, static_cast<std::uint64_t>(event.host_node));
  }
  if (event.has_content) {
    add(3, event.content);
  }
  if (event.is_fixed) {
    add(4, 1);
  }
  const auto index = static_cast<std::size_t>(event.call);
  put_head(index, begin_ns, duration_ns,
           (event.status != 0 ? trace::recording::event_failed : 0) |
               (count > 0 ? trace::recording::event_has_extras : 0));
  if (event.status != 0) {
    to_.put_signed(event.status);
  }
  if (count > 0) {
    to_.put_varint(count);
    for (std::size_t at = 0; at < count; ++at) {
      to_.put_varint(extras[at].index);
      put_value(number_of(extras[at].which), extras[at].value);
    }
  }
  const auto& schema = schemas[index];
  for (std::size_t at = 0; at < schema.count; ++at) {
    put_value(number_of(schema.roles[at]), event.values[at]);
  }
}

void event_encoder::put(const device_record& record) noexcept {
  const auto what = static_cast<std::size_t>(record.what);
  put_head(call_count + what, record.begin,
           record.end > record.begin ? record.end - record.begin : 0, 0);
  const auto value_of = [&](std::size_t one) -> std::uint64_t {
    switch (one) {
      case number_of(role::device):
        return record.device;
      case number_of(role::stream):
        return record.stream;
      case number_of(role::bytes):
        return record.bytes;
      case number_of(role::way):
        return record.way;
      case number_of(role::dst_memory):
        return record.dst_memory;
      case number_of(role::src_memory):
        return record.src_memory;
      case number_of(role::memory):
        return record.memory;
      case name_role:
        return record.name;
      default:
        return record.correlation;
    }
  };
  for (std::size_t at = 0; at < records[what].count; ++at) {
    put_value(records[what].roles[at], value_of(records[what].roles[at]));
  }
}

void event_encoder::put_window(std::uint64_t time, window_edge edge) noexcept {
  put_head(call_count + static_cast<std::size_t>(record_id::window), time, 0, 0);
  put_value(value_role, static_cast<std::uint64_t>(edge));
}

}  // namespace berth::interpose
