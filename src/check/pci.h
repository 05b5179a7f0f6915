#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace renkei::check {

// The link of an accelerator, network card or NVMe disk, as it came up and as it could be.
struct PciLink {
  std::string address;  // 0000:3b:00.0
  std::string kind;     // accelerator, network card, disk
  int width = 0, most_width = 0;
  double speed = 0, most_speed = 0;  // gigatransfers per second
};

std::vector<PciLink> pci_links(const std::filesystem::path& sysfs);

}  // namespace renkei::check
