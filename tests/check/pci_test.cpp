#include "check/pci.h"

#include <fstream>

#include "check/environment.h"
#include "tests/base/temporary_directory.h"

namespace renkei::check {
namespace {

void write_card(const std::filesystem::path& sysfs, const std::string& address,
                const std::string& pci_class, const std::string& width, const std::string& speed) {
  const auto card = sysfs / "bus/pci/devices" / address;
  std::filesystem::create_directories(card);
  std::ofstream(card / "class") << pci_class << "\n";
  std::ofstream(card / "current_link_width") << width << "\n";
  std::ofstream(card / "max_link_width") << "16\n";
  std::ofstream(card / "current_link_speed") << speed << "\n";
  std::ofstream(card / "max_link_speed") << "8.0 GT/s PCIe\n";
}

TEST(Pci, ACardThatCameUpX8IsFoundAndItsNeighboursAreNot) {
  const test::TemporaryDirectory sysfs;
  write_card(sysfs.path(), "0000:3b:00.0", "0x030200", "16", "8.0 GT/s PCIe");
  write_card(sysfs.path(), "0000:5e:00.0", "0x030200", "8", "8.0 GT/s PCIe");
  write_card(sysfs.path(), "0000:86:00.0", "0x020700", "16", "2.5 GT/s PCIe");
  write_card(sysfs.path(), "0000:00:1f.0", "0x060100", "1", "2.5 GT/s PCIe");  // a bridge
  write_card(sysfs.path(), "0000:00:02.0", "0x030000", "0", "Unknown");        // on the board
  const auto findings = pci_findings(sysfs.path());
  ASSERT_EQ(findings.size(), 3);
  EXPECT_EQ(findings[0].status, Status::pass);
  EXPECT_EQ(findings[1].status, Status::fail);
  EXPECT_THAT(findings[1].reason, testing::HasSubstr("0000:5e:00.0 came up x8 instead of x16"));
  EXPECT_EQ(findings[2].status, Status::warn);
  EXPECT_THAT(findings[2].reason, testing::HasSubstr("network card 0000:86:00.0"));
}

TEST(Pci, AHostWithoutCardsSkips) {
  const test::TemporaryDirectory sysfs;
  const auto findings = pci_findings(sysfs.path());
  ASSERT_EQ(findings.size(), 1);
  EXPECT_EQ(findings[0].status, Status::skip);
}

}  // namespace
}  // namespace renkei::check
