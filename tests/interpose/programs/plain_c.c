/* SPDX-License-Identifier: Apache-2.0
   A C program that knows nothing of GPUs. */
#include <stdio.h>
int main(void) {
  puts("plain");
  return 11;
}
