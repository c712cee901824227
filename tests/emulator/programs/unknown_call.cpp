// SPDX-License-Identifier: Apache-2.0
// Calls the driver with a number that it has not: refused as a kernel without it would.
#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/ioctl.h>

int main() {
  const int device = open("/dev/kfd", O_RDWR | O_CLOEXEC);
  unsigned words[4] = {};
  for (int twice = 0; twice < 2; ++twice) {
    errno = 0;
    if (ioctl(device, _IOWR('K', 0x7e, words), words) != -1 || errno != ENOTTY) {
      return 1;
    }
  }
  const int dup = fcntl(device, F_DUPFD, 0);
  // GET_VERSION, through a copy of the descriptor
  if (ioctl(dup, _IOR('K', 0x01, unsigned[2]), words) != 0 || words[0] != 1) {
    return 2;
  }
  return 0;
}
