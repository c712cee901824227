// SPDX-License-Identifier: Apache-2.0
#include "cli.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "core/text.hpp"

namespace berth::cli {
namespace {

error unwritable(const std::string& path, int reason) {
  return error(errc::file_unwritable, std::generic_category().message(reason), path,
               "name a file in a folder that exists and can be written");
}

using text_producer = std::function<void(const text_sink&)>;

// All of the text into what stands at `path`; gives errno of the first failure, 0 if there was
// none.
int write_all(const std::string& path, const text_producer& produce) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) {
    return errno;
  }
  errno = 0;
  int failure = 0;
  produce([&](std::string_view part) {
    if (failure == 0 && std::fwrite(part.data(), 1, part.size(), file) != part.size()) {
      failure = errno;
    }
  });
  if (std::fclose(file) != 0 && failure == 0) {
    failure = errno;
  }
  return failure;
}

report::colour colours_for(bool terminal) {
  const char* const no_colour = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe)
  return terminal && (no_colour == nullptr || *no_colour == '\0') ? report::colour::on
                                                                  : report::colour::off;
}

}  // namespace

streams standard_streams() {
  const bool out_is_terminal = ::isatty(STDOUT_FILENO) != 0;
  return {.out = std::cout,
          .err = std::cerr,
          .out_is_terminal = out_is_terminal,
          .err_is_terminal = ::isatty(STDERR_FILENO) != 0,
          .colours = colours_for(out_is_terminal)};
}

streams all_on_error(const streams& io) {
  return {.out = io.err,
          .err = io.err,
          .out_is_terminal = io.err_is_terminal,
          .err_is_terminal = io.err_is_terminal,
          .colours = colours_for(io.err_is_terminal)};
}

exit_status refuse(const streams& io, const error& what) {
  show_error(io.err, what);
  return what.code() == errc::usage ? exit_status::wrong_usage : exit_status::unusable;
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

bool would_replace(const std::string& file, const std::string& output) {
  std::error_code ignored;
  return !output.empty() && std::filesystem::is_regular_file(file, ignored) &&
         std::filesystem::equivalent(file, output, ignored);
}

result<void> write_output(const streams& io, const std::string& path, std::string_view text) {
  return write_output(io, path, [&](const text_sink& sink) { sink(text); });
}

result<void> write_output(const streams& io, const std::string& path,
                          const text_producer& produce) {
  if (path.empty()) {
    produce([&](std::string_view part) { io.out << part; });
    io.out << std::flush;
    return io.out ? result<void>()
                  : result<void>(error(errc::file_unwritable, "standard output is closed or full"));
  }
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::is_directory(status)) {
    return unwritable(path, EISDIR);
  }
  // A device or a pipe is written to, never replaced.
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    const int failure = write_all(path, produce);
    return failure == 0 ? result<void>() : result<void>(unwritable(path, failure));
  }
  // A neighbour that is renamed at the end: readers see the old file or the new one, never a part.
  // Of a link, the file that it leads to is replaced.
  const auto target =
      std::filesystem::exists(status) ? std::filesystem::canonical(path, ignored).string() : path;
  const auto partial = fmt::format("{}.partial-{}", target, ::getpid());
  int failure = write_all(partial, produce);
  if (failure == 0 && std::filesystem::exists(status)) {
    std::filesystem::permissions(partial, status.permissions(), ignored);
  }
  if (failure == 0 && std::rename(partial.c_str(), target.c_str()) != 0) {
    failure = errno;
  }
  if (failure != 0) {
    std::remove(partial.c_str());
    return unwritable(path, failure);
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
  *err_ << fmt::format("\r\x1b[K{} {:3} %", text::shorten(text::printable(what_), 80), percent)
        << std::flush;
}

}  // namespace berth::cli
