#include "check/pci.h"

#include <algorithm>
#include <fstream>
#include <optional>

namespace renkei::check {
namespace {

std::string first_line(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

std::optional<double> leading_number(const std::filesystem::path& file) {
  try {
    return std::stod(first_line(file));  // "8.0 GT/s PCIe", "16"
  } catch (const std::exception&) {
    return std::nullopt;  // "Unknown", or no such file
  }
}

std::string kind_of(const std::string& pci_class) {
  if (pci_class.starts_with("0x03") || pci_class.starts_with("0x12")) return "accelerator";
  if (pci_class.starts_with("0x02")) return "network card";
  if (pci_class.starts_with("0x0108")) return "disk";
  return "";
}

}  // namespace

std::vector<PciLink> pci_links(const std::filesystem::path& sysfs) {
  std::vector<PciLink> links;
  std::error_code missing;
  for (const auto& device :
       std::filesystem::directory_iterator(sysfs / "bus/pci/devices", missing)) {
    const std::string kind = kind_of(first_line(device.path() / "class"));
    const auto width = leading_number(device.path() / "current_link_width"),
               most_width = leading_number(device.path() / "max_link_width"),
               speed = leading_number(device.path() / "current_link_speed"),
               most_speed = leading_number(device.path() / "max_link_speed");
    // Virtual devices have no link, or one of width 0.
    if (kind.empty() || !width || !most_width || !speed || !most_speed || *width == 0) continue;
    links.push_back({device.path().filename(), kind, static_cast<int>(*width),
                     static_cast<int>(*most_width), *speed, *most_speed});
  }
  std::ranges::sort(links, {}, &PciLink::address);
  return links;
}

}  // namespace renkei::check
