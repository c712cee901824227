// SPDX-License-Identifier: Apache-2.0
// Never touches a device: ends with status 7 and its own output.
#include <cstdio>

int main() {
  std::puts("nothing to do with a GPU");
  return 7;
}
