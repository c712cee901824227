// SPDX-License-Identifier: Apache-2.0
// A program that knows nothing of GPUs, and needs no C++ library.
#include <cstdio>

int main() {
  std::puts("plain");
  return 11;
}
