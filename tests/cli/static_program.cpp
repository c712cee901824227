// SPDX-License-Identifier: Apache-2.0
// A program that is linked statically: nothing can be preloaded into it.
#include <cstdio>

int main() {
  std::puts("static");
  return 7;
}
