// SPDX-License-Identifier: Apache-2.0
// A program that is linked with no GPU runtime, and opens one. Arguments: how, and the library's
// path.
#include <dlfcn.h>

#include <map>
#include <string>

#include "programs/hip_calls.hpp"

namespace {

void* opened(void* handle) {
  if (handle == nullptr) {
    std::printf("cannot open: %s\n", ::dlerror());
    std::exit(8);
  }
  return handle;
}

int copy_by(void* handle, const char* name = "hipMemcpy") {
  auto* const copy = reinterpret_cast<program::copy_function>(::dlsym(handle, name));
  if (copy == nullptr) {
    const char* const why = ::dlerror();
    std::printf("no %s: %s\n", name, why == nullptr ? "(no reason)" : "a reason");
    return 1;
  }
  program::copy_with(copy, 10);
  std::printf("copied\n");
  return 0;
}

int run_plugin(void* handle) {
  auto* const run = reinterpret_cast<void (*)()>(::dlsym(opened(handle), "run_plugin"));
  run();
  std::printf("plugin has run\n");
  return 0;
}

int global(const char* path) {
  return copy_by(opened(::dlopen(path, RTLD_NOW | RTLD_GLOBAL)));
}
int local(const char* path) {
  return copy_by(opened(::dlopen(path, RTLD_NOW | RTLD_LOCAL)));
}
int by_default(const char* path) {
  opened(::dlopen(path, RTLD_NOW | RTLD_GLOBAL));
  return copy_by(RTLD_DEFAULT);
}
int by_program(const char* path) {
  opened(::dlopen(path, RTLD_NOW | RTLD_GLOBAL));
  return copy_by(opened(::dlopen(nullptr, RTLD_NOW)));
}
int absent(const char*) {
  copy_by(RTLD_DEFAULT);
  copy_by(RTLD_DEFAULT, "cuMemcpyHtoD_v2");
  copy_by(opened(::dlopen(nullptr, RTLD_NOW)));
  copy_by(RTLD_DEFAULT, "hipNoSuchCall");
  copy_by(opened(::dlopen("libc.so.6", RTLD_NOW)));
  return 0;
}
int closed_again(const char* path) {
  void* const handle = opened(::dlopen(path, RTLD_NOW | RTLD_LOCAL));
  const int status = copy_by(handle);
  ::dlclose(handle);
  return status + copy_by(opened(::dlopen(path, RTLD_NOW | RTLD_LOCAL)));
}
int own_space(const char* path) {
  return copy_by(opened(::dlmopen(LM_ID_NEWLM, path, RTLD_NOW)));
}
int plugin(const char* path) {
  return run_plugin(::dlopen(path, RTLD_NOW | RTLD_LOCAL));
}
int deep_plugin(const char* path) {
  return run_plugin(::dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND));
}
int plugin_in_own_space(const char* path) {
  return run_plugin(::dlmopen(LM_ID_NEWLM, path, RTLD_NOW));
}
int table(const char* path) {
  using find_function = int (*)(const char*, void**, int, unsigned long long, int*);
  void* const handle = opened(::dlopen(path, RTLD_NOW | RTLD_LOCAL));
  auto* const find = reinterpret_cast<find_function>(::dlsym(handle, "hipGetProcAddress"));
  void* copy = nullptr;
  int status = find("hipMemcpy", &copy, 600, 0, nullptr);
  program::copy_with(reinterpret_cast<program::copy_function>(copy), 10);
  status += find("hipNoSuchCall", &copy, 600, 0, nullptr) == 500 ? 0 : 1;
  std::printf("status %d\n", status);
  return status;
}

// As a static cudart does it: the driver's own table, through one looked-up function.
int cuda_table(const char* path, unsigned long long flags) {
  using find_function = int (*)(const char*, void**, int, unsigned long long, int*);
  void* const handle = opened(::dlopen(path, RTLD_NOW | RTLD_LOCAL));
  auto* const first = reinterpret_cast<find_function>(::dlsym(handle, "cuGetProcAddress_v2"));
  void* function = nullptr;
  int status = first("cuGetProcAddress", &function, 12000, flags, nullptr);
  auto* const find = reinterpret_cast<find_function>(function);
  const auto get = [&](const char* name) {
    void* found = nullptr;
    status += find(name, &found, 12000, flags, nullptr);
    return found;
  };
  status += reinterpret_cast<int (*)(unsigned)>(get("cuInit"))(0);
  unsigned long long memory = 0;
  status +=
      reinterpret_cast<int (*)(unsigned long long*, std::size_t)>(get("cuMemAlloc"))(&memory, 4096);
  const unsigned char from[64] = {1, 2, 3};
  unsigned char back[64] = {};
  status += reinterpret_cast<int (*)(unsigned long long, const void*, std::size_t, void*)>(
      get("cuMemcpyHtoDAsync"))(memory, from, 64, nullptr);
  status += reinterpret_cast<int (*)(void*, unsigned long long, std::size_t)>(get("cuMemcpyDtoH"))(
      back, memory, 32);
  status += reinterpret_cast<int (*)(unsigned long long)>(get("cuMemFree"))(memory);
  status += back[2] == 3 ? 0 : 1;
  std::printf("status %d\n", status);
  return status;
}
int cudart(const char* path) {
  return cuda_table(path, 0);
}
int cudart_per_thread(const char* path) {
  return cuda_table(path, 2);
}

const std::map<std::string, int (*)(const char*)> modes{
    {"global", global},
    {"local", local},
    {"default", by_default},
    {"program", by_program},
    {"absent", absent},
    {"closed", closed_again},
    {"own_space", own_space},
    {"plugin", plugin},
    {"deep_plugin", deep_plugin},
    {"plugin_in_own_space", plugin_in_own_space},
    {"table", table},
    {"cudart", cudart},
    {"cudart_per_thread", cudart_per_thread},
    {"nothing", [](const char*) { return 0; }}};

}  // namespace

int main(int count, char** arguments) {
  const auto mode = modes.find(count > 1 ? arguments[1] : "");
  return mode == modes.end() ? 99 : mode->second(count > 2 ? arguments[2] : "");
}
