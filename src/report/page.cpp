// web/built/report.html, which `npm run build` in web/ makes, is part of the program. Data takes
// the place of a marker in it.
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "report/page_data.h"

asm(R"(
  .section .rodata
  .global renkei_report_page
  .global renkei_report_page_end
renkei_report_page:
  .incbin ")" RENKEI_REPORT_PAGE R"("
renkei_report_page_end:
  .byte 0
  .text
)");

extern "C" const char renkei_report_page[], renkei_report_page_end[];

namespace renkei::report {

std::string page_of(std::span<const RunReport> runs) {
  constexpr std::string_view kMarker = "\"RENKEI_DATA\"";
  std::string page(static_cast<const char*>(renkei_report_page),
                   static_cast<const char*>(renkei_report_page_end));
  const size_t place = page.find(kMarker);
  if (place == std::string::npos) throw Error(ErrorCode::bug, "the page has no place for its data");
  std::string data = page_data(runs).dump();
  // The only thing in JSON that could end the script that it stands in.
  for (size_t at = 0; (at = data.find("</", at)) != std::string::npos; at += 3)
    data.replace(at, 2, "<\\/");
  return page.replace(place, kMarker.size(), data);
}

}  // namespace renkei::report
