#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the test programs again and again: no failure, no hang.
# Usage: soak.sh BERTH PROGRAMS_FOLDER [RUNS]      (default: 200 runs in all)
set -u
berth=$1
programs=$2
runs=${3:-200}

names=(pageable_copy pinned_copy registered_copy device_copy streams_events callbacks graphs managed
  pointer_attributes copy_2d peer_copy ipc threads fork_exec stream_values device_times)
if [[ ! -x $programs/hip_pinned_copy ]]; then
  printf 'the HIP programs were not built: libamdhip64-dev is absent\n'
  exit 77 # skipped
fi
failed=0
for ((run = 0; run < runs; ++run)); do
  name=${names[run % ${#names[@]}]}
  output=$(timeout 120 "$berth" emulate --gpus 2 -- "$programs/hip_$name" 2>&1)
  status=$?
  if [[ $status -ne 0 ]]; then
    failed=$((failed + 1))
    printf 'run %d, %s: status %d\n%s\n' "$run" "$name" "$status" "$output"
  fi
done
printf '%d runs, %d failed\n' "$runs" "$failed"
[[ $failed -eq 0 ]]
