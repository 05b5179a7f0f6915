#pragma once
#include <filesystem>
#include "capture/named_tensors.h"
namespace renkei::capture { NamedTensors read_weights_file(const std::filesystem::path& file); }
