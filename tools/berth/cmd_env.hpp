// SPDX-License-Identifier: Apache-2.0
// `berth env`: the variables with which a program records itself, for whatever starts it.
#pragma once

#include <cstdint>
#include <string>

#include "cli.hpp"
#include "cmd_run.hpp"

namespace berth::cli {

enum class env_form : std::uint8_t {
  shell,   // export lines
  json,    // one object
  docker,  // options of docker run and podman run
  slurm,   // an option of srun and sbatch
  mpirun,  // options of Open MPI's mpirun
};

struct env_options {
  std::string record;  // a pattern or a folder; empty: berth-%h-%p.berth in this folder
  recording_words recording;
  env_form form = env_form::shell;
};

// The exit status: done; wrong_usage; unusable where the recorder is not there.
[[nodiscard]] exit_status run_env(const env_options& options, const streams& io);

}  // namespace berth::cli
