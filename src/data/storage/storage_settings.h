#pragma once

#include "base/settings.h"
#include "data/storage/storage.h"

namespace renkei::data {

void declare_storage_settings(Settings& settings);

StorageOptions storage_options(const Settings& settings);

}  // namespace renkei::data
