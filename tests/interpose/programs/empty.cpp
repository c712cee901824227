// SPDX-License-Identifier: Apache-2.0
// A library with nothing in it, under the name of one that programs need.
extern "C" {
extern const int berth_test_nothing;
const int berth_test_nothing = 0;
}
