// SPDX-License-Identifier: Apache-2.0
#include "cli.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <utility>

#include <fmt/format.h>

#include "core/text.hpp"

namespace berth::cli {
namespace {

error unwritable(const std::string& path) {
  return error(errc::file_unwritable, std::strerror(errno),  // NOLINT(concurrency-mt-unsafe)
               path, "name a file in a folder that exists and can be written");
}

}  // namespace

streams standard_streams() {
  const bool out_is_terminal = ::isatty(STDOUT_FILENO) != 0;
  const char* const no_colour = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe)
  const bool colour = out_is_terminal && (no_colour == nullptr || *no_colour == '\0');
  return {.out = std::cout,
          .err = std::cerr,
          .out_is_terminal = out_is_terminal,
          .err_is_terminal = ::isatty(STDERR_FILENO) != 0,
          .colours = colour ? report::colour::on : report::colour::off};
}

void show_error(std::ostream& err, const error& what) {
  err << "error: " << what.id() << ": ";
  if (!what.where().empty()) {
    err << text::printable(what.where()) << ": ";
  }
  err << text::printable(what.message()) << '\n';
  if (!what.hint().empty()) {
    err << "hint: " << what.hint() << '\n';
  }
}

result<void> write_output(const streams& io, const std::string& path, std::string_view text) {
  if (path.empty()) {
    io.out << text << std::flush;
    return io.out ? result<void>()
                  : result<void>(error(errc::file_unwritable, "standard output is closed or full"));
  }
  // A neighbour that is renamed at the end: readers see the old file or the new one, never a part.
  const auto partial = fmt::format("{}.partial-{}", path, ::getpid());
  std::ofstream file(partial, std::ios::binary | std::ios::trunc);
  file << text << std::flush;
  const bool written = file.good();
  file.close();
  if (!written || std::rename(partial.c_str(), path.c_str()) != 0) {
    auto why = unwritable(path);
    std::remove(partial.c_str());
    return why;
  }
  return {};
}

progress_line::progress_line(const streams& io, std::string what)
    : err_(io.err_is_terminal ? &io.err : nullptr), what_(std::move(what)) {}

progress_line::~progress_line() {
  if (err_ != nullptr && shown_percent_ >= 0) {
    *err_ << "\r\x1b[K" << std::flush;
  }
}

void progress_line::update(std::uint64_t done, std::uint64_t total) {
  const int percent = total > 0 ? static_cast<int>(done * 100 / total) : 0;
  if (err_ == nullptr || percent == shown_percent_) {
    return;
  }
  shown_percent_ = percent;
  *err_ << fmt::format("\r\x1b[K{} {:3} %", text::shorten(what_, 80), percent) << std::flush;
}

}  // namespace berth::cli
