#include "compute/onednn/loader.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <mutex>

#include "base/error.h"
#include "compute/scratch.h"

namespace renkei::compute::onednn {
namespace {

namespace fs = std::filesystem;

constexpr char kFile[] = "renkei_onednn.so";
constexpr char kWithout[] =
    "compute.blocked_layout=false trains without it, with Torch's operators.";

// RTLD_DEEPBIND: the module's own oneDNN comes before everything that the program has loaded. The
// address sanitizer refuses it; programs with the sanitizer have no Torch.
#ifdef __SANITIZE_ADDRESS__
constexpr int kFlags = RTLD_NOW | RTLD_LOCAL;
#else
constexpr int kFlags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif

// The library, or the program, that this function is linked into.
fs::path own_file() {
  Dl_info info;
  return dladdr(reinterpret_cast<const void*>(&module_places), &info) && info.dli_fname
             ? fs::path(info.dli_fname)
             : fs::path();
}

}  // namespace

std::vector<fs::path> module_places() {
  std::error_code ignored;
  std::vector<fs::path> places;
  for (const fs::path& file : {fs::read_symlink("/proc/self/exe", ignored), own_file()}) {
    const fs::path directory = fs::absolute(file, ignored).parent_path();
    if (directory.empty()) continue;
    places.push_back(directory / kFile);
    places.push_back(directory.parent_path() / "lib/renkei" / kFile);
  }
  places.push_back(fs::path(RENKEI_ONEDNN_BUILD_DIRECTORY) / kFile);
  return places;
}

const Module& open_module(const std::vector<fs::path>& places) {
  std::error_code ignored;
  for (const fs::path& place : places) {
    if (!fs::exists(place, ignored)) continue;
    void* library = dlopen(place.c_str(), kFlags);
    if (!library)
      throw Error(ErrorCode::usage,
                  fmt::format("The convolution kernels in {} cannot be loaded: {}.", place.string(),
                              dlerror()),
                  fmt::format("install Renkei again with 'make install'; {}", kWithout));
    const auto entry = reinterpret_cast<Entry>(dlsym(library, kEntryName));
    if (!entry)
      throw Error(
          ErrorCode::usage,
          fmt::format("{} is not a module of Renkei: it has no {}.", place.string(), kEntryName),
          "remove this file, or install Renkei again with 'make install'");
    const Module* opened = entry({.scratch = scratch});
    if (!opened)
      throw Error(ErrorCode::usage,
                  "This processor has no AVX2 and FMA instructions, which the convolution kernels "
                  "need.",
                  kWithout);
    return *opened;
  }
  throw Error(ErrorCode::usage,
              fmt::format("The convolution kernels, {}, are not beside the program and in none of "
                          "the {} places where they can be.",
                          kFile, places.size()),
              fmt::format("build with 'make build', or install with 'make install'; {}", kWithout));
}

const Module& module() {
  static std::mutex mutex;
  static const Module* opened = nullptr;
  const std::lock_guard lock(mutex);
  if (!opened) opened = &open_module(module_places());
  return *opened;
}

}  // namespace renkei::compute::onednn
