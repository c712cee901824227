// SPDX-License-Identifier: Apache-2.0
// The recorder's records against CUPTI's headers. Compiling it is the test.
#include <cstddef>

#include <gtest/gtest.h>

// First: cuda.h makes macros of the names in the table of calls.
#include "interpose/capture/cupti.hpp"
//
#include <cupti.h>

namespace berth::interpose {
namespace {

#if CUPTI_API_VERSION >= 130000
using their_copy = ::CUpti_ActivityMemcpy6;
using their_fill = ::CUpti_ActivityMemset4;
using their_kernel = ::CUpti_ActivityKernel10;
using their_migration = ::CUpti_ActivityUnifiedMemoryCounter3;
using their_peer_copy = ::CUpti_ActivityMemcpyPtoP4;

#define BERTH_SAME(ours, mine, theirs_type, theirs)                                 \
  static_assert(offsetof(cupti_abi::ours, mine) == offsetof(theirs_type, theirs) && \
                sizeof(cupti_abi::ours::mine) == sizeof(theirs_type::theirs))
BERTH_SAME(copy_record, kind, their_copy, kind);
BERTH_SAME(copy_record, copy_kind, their_copy, copyKind);
BERTH_SAME(copy_record, src_kind, their_copy, srcKind);
BERTH_SAME(copy_record, dst_kind, their_copy, dstKind);
BERTH_SAME(copy_record, bytes, their_copy, bytes);
BERTH_SAME(copy_record, begin, their_copy, start);
BERTH_SAME(copy_record, end, their_copy, end);
BERTH_SAME(copy_record, device, their_copy, deviceId);
BERTH_SAME(copy_record, stream, their_copy, streamId);
BERTH_SAME(copy_record, correlation, their_copy, correlationId);
BERTH_SAME(copy_record, copy_kind, their_peer_copy, copyKind);
BERTH_SAME(copy_record, bytes, their_peer_copy, bytes);
BERTH_SAME(copy_record, begin, their_peer_copy, start);
BERTH_SAME(copy_record, end, their_peer_copy, end);
BERTH_SAME(copy_record, device, their_peer_copy, deviceId);
BERTH_SAME(copy_record, stream, their_peer_copy, streamId);
BERTH_SAME(fill_record, bytes, their_fill, bytes);
BERTH_SAME(fill_record, begin, their_fill, start);
BERTH_SAME(fill_record, end, their_fill, end);
BERTH_SAME(fill_record, device, their_fill, deviceId);
BERTH_SAME(fill_record, stream, their_fill, streamId);
BERTH_SAME(fill_record, correlation, their_fill, correlationId);
BERTH_SAME(kernel_record, begin, their_kernel, start);
BERTH_SAME(kernel_record, end, their_kernel, end);
BERTH_SAME(kernel_record, device, their_kernel, deviceId);
BERTH_SAME(kernel_record, stream, their_kernel, streamId);
BERTH_SAME(kernel_record, correlation, their_kernel, correlationId);
BERTH_SAME(kernel_record, name, their_kernel, name);
BERTH_SAME(migration_record, counter, their_migration, counterKind);
BERTH_SAME(migration_record, value, their_migration, value);
BERTH_SAME(migration_record, begin, their_migration, start);
BERTH_SAME(migration_record, end, their_migration, end);
BERTH_SAME(migration_record, address, their_migration, address);
BERTH_SAME(migration_record, src_device, their_migration, srcId);
BERTH_SAME(migration_record, dst_device, their_migration, dstId);
BERTH_SAME(migration_record, stream, their_migration, streamId);

static_assert(static_cast<int>(cupti_abi::activity::copy) == CUPTI_ACTIVITY_KIND_MEMCPY);
static_assert(static_cast<int>(cupti_abi::activity::fill) == CUPTI_ACTIVITY_KIND_MEMSET);
static_assert(static_cast<int>(cupti_abi::activity::kernel) ==
              CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
static_assert(static_cast<int>(cupti_abi::activity::peer_copy) == CUPTI_ACTIVITY_KIND_MEMCPY2);
static_assert(static_cast<int>(cupti_abi::activity::migration) ==
              CUPTI_ACTIVITY_KIND_UNIFIED_MEMORY_COUNTER);

TEST(CuptiRecords, AreDeclaredAsCuptiDeclaresThem) {
  SUCCEED() << "it has compiled";
}
#else
TEST(CuptiRecords, AreDeclaredAsCuptiDeclaresThem) {
  GTEST_SKIP() << "CUPTI " << CUPTI_API_VERSION << " has other names for its records";
}
#endif

}  // namespace
}  // namespace berth::interpose
