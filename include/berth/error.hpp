// SPDX-License-Identifier: Apache-2.0
/// @file
/// What berth says when something cannot be done. An error has a stable id (`BTH-1003`) that
/// docs/errors.md explains, what happened, where, what to do, and what can still be used.
/// The library never prints and never exits: it throws an exception that carries an error, and each
/// public call that throws has a `try_` twin that returns `result<T>`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace berth {

/// Each kind of failure. The numbers are part of the interface: they may be added, never reused.
enum class errc : std::uint16_t {
  usage = 1001,                 ///< the call or command line makes no sense
  file_unreadable = 1101,       ///< a file cannot be opened or read
  file_unwritable = 1102,       ///< an output cannot be created or written
  input_empty = 1103,           ///< the input holds nothing
  input_unknown_format = 1104,  ///< no reader recognises the input
  input_malformed = 1105,       ///< the input breaks its own format
  input_encoding = 1106,        ///< text that is not UTF-8
  input_out_of_range = 1107,    ///< a number or length that cannot be true
  input_truncated = 1108,       ///< the input ends in the middle; what was whole was used
  input_compression = 1109,     ///< compressed data that does not decompress
  gpu_no_runtime = 1201,        ///< no GPU runtime library is on this machine
  gpu_runtime_unusable = 1202,  ///< a runtime library that lacks calls, is too old or won't start
  gpu_no_device = 1203,         ///< the runtime works and has no device
  gpu_device_out_of_range = 1204,   ///< no device of this index
  gpu_out_of_memory = 1205,         ///< the memory asked for is not there; carries the amounts
  gpu_invalid_value = 1206,         ///< an address, size or option that the runtime refuses
  gpu_invalid_handle = 1207,        ///< a stream or event that is none, or of another device
  gpu_not_supported = 1208,         ///< this runtime or device cannot do it
  gpu_not_permitted = 1209,         ///< the system does not allow it to this user
  gpu_not_ready = 1210,             ///< a result asked for before its work has completed
  gpu_already_registered = 1211,    ///< host memory that is page-locked already
  gpu_not_registered = 1212,        ///< host memory that was never registered
  gpu_launch_failed = 1213,         ///< a kernel that could not be started
  gpu_kernel_unavailable = 1214,    ///< berth's own kernels cannot be built for the device
  gpu_capture = 1215,               ///< not allowed while a stream captures a graph
  gpu_device_lost = 1216,           ///< earlier work broke the device's context
  gpu_shut_down = 1217,             ///< the runtime has shut down
  gpu_unexpected = 1218,            ///< an error of the runtime that has no place of its own here
  memory_invalid_size = 1301,       ///< a size that cannot be allocated
  memory_invalid_alignment = 1302,  ///< an alignment that cannot be had
  memory_foreign_pointer = 1303,    ///< an address that this resource did not give out
  memory_double_free = 1304,        ///< an address that was freed already
  memory_over_budget = 1305,        ///< more pinned memory than the budget allows
  memory_context_closed = 1306,     ///< a call to something whose context is gone
  transfer_overlap = 1401,          ///< source and destination of a copy overlap
  transfer_wrong_direction = 1402,  ///< the ends do not fit the direction that was expected
  transfer_out_of_range = 1403,     ///< a copy beyond the end of an allocation
  transfer_unmapped = 1404,         ///< host memory that is not there, or cannot be used so
  transfer_cancelled = 1405,        ///< the engine ended before the copy did
  transfer_forked = 1406,           ///< a call in the child of a fork, which has no engine
  transfer_callback = 1407,         ///< a producer or consumer failed
  transfer_not_kept = 1408,         ///< forget() of a range that is not under keep()
  transfer_wrong_data = 1409,       ///< a copy arrived with other bytes than were sent
  internal = 1901,                  ///< a fault in berth itself
};

/// The largest thing that is lost with an error; all else can still be used.
enum class error_scope : std::uint8_t {
  call,     ///< only this call failed; retry or carry on
  stream,   ///< the stream's later work cannot be relied on
  device,   ///< the device (its context) is lost
  process,  ///< nothing of berth can be used in this process
};

/// The amounts behind an out-of-memory error.
struct memory_shortage {
  std::uint64_t requested = 0;         ///< bytes asked for
  std::optional<std::uint64_t> free;   ///< bytes that were free; nothing if not known
  std::optional<std::uint64_t> total;  ///< bytes there are in all, or the limit
  friend bool operator==(const memory_shortage&, const memory_shortage&) = default;
};

/// One failure: a value, copied freely.
class error {
public:
  /// @param code     which kind of failure
  /// @param message  what happened, with the values that matter
  /// @param where    file, position, call or buffer; may be empty
  /// @param hint     what to do about it; may be empty
  explicit error(errc code, std::string message, std::string where = {}, std::string hint = {});

  [[nodiscard]] errc code() const noexcept { return code_; }
  /// "BTH-1105"
  [[nodiscard]] std::string id() const;
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  [[nodiscard]] const std::string& where() const noexcept { return where_; }
  [[nodiscard]] const std::string& hint() const noexcept { return hint_; }
  [[nodiscard]] error_scope scope() const noexcept;
  /// The amounts of an out-of-memory error; nothing for others.
  [[nodiscard]] const std::optional<memory_shortage>& shortage() const noexcept {
    return shortage_;
  }
  /// The same error with the amounts of an out-of-memory error.
  [[nodiscard]] error with(memory_shortage amounts) &&;
  /// All of it on one line: "BTH-1105: trace.json at byte 812: not JSON (hint)".
  [[nodiscard]] std::string to_string() const;

private:
  errc code_;
  std::string message_;
  std::string where_;
  std::string hint_;
  std::optional<memory_shortage> shortage_;
};

/// The base of everything that berth throws.
class exception : public std::runtime_error {
public:
  explicit exception(error what);
  [[nodiscard]] const error& details() const noexcept { return error_; }

private:
  error error_;
};

/// A call or command line that makes no sense (10xx).
class usage_error : public exception {
public:
  using exception::exception;
};

/// A file or text that cannot be read or believed (11xx).
class input_error : public exception {
public:
  using exception::exception;
};

/// A GPU runtime or device that cannot do what was asked (12xx).
class gpu_error : public exception {
public:
  using exception::exception;
};

/// Not enough memory (1205): details().shortage() holds the amounts.
class out_of_memory_error : public gpu_error {
public:
  using gpu_error::gpu_error;
};

/// A size, address or context that a resource or pool cannot take (13xx).
class memory_error : public exception {
public:
  using exception::exception;
};

/// A copy that an engine cannot make, or did not finish (14xx).
class transfer_error : public exception {
public:
  using exception::exception;
};

/// Throws the exception type that belongs to the error's group.
[[noreturn]] void throw_error(const error& what);

/// One row of the table of errors: what a code means, independent of an occurrence.
struct error_info {
  errc code;
  std::string_view name;     ///< "input-malformed"
  error_scope scope;         ///< what is lost
  std::string_view meaning;  ///< one sentence
};

/// All errors that berth knows, by ascending number; docs/errors.md has a section for each.
[[nodiscard]] std::span<const error_info> error_table() noexcept;

/// "BTH-1105"
[[nodiscard]] std::string error_id(errc code);

}  // namespace berth
