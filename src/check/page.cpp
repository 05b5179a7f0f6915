#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "check/acceptance.h"

namespace renkei::check {
namespace {

constexpr double kWidth = 640, kHeight = 240, kMargin = 40;

std::string escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

// Figure 3 of MN-1's paper: the rates of all ranks, sorted; a part that is worse breaks the curve.
std::string sorted_curve(std::vector<RankMeasures> ranks) {
  std::ranges::sort(ranks, {}, &RankMeasures::double_flops);
  const double most = ranks.back().double_flops;
  if (most <= 0) return "";
  std::string svg = fmt::format(
      "<h2>Matrix products, sorted</h2>\n<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\">\n<text x=\"0\" y=\"12\">{2:.1f} GFLOP/s</text>\n",
      kWidth, kHeight, most / 1e9);
  const double step = (kWidth - 2 * kMargin) / static_cast<double>(ranks.size());
  for (size_t i = 0; i < ranks.size(); ++i) {
    const double height = (kHeight - 2 * kMargin) * ranks[i].double_flops / most;
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"#4a7\">"
        "<title>rank {} on {}: {:.2f} GFLOP/s</title></rect>\n",
        kMargin + static_cast<double>(i) * step, kHeight - kMargin - height, 0.9 * step, height,
        ranks[i].rank, escape(ranks[i].host), ranks[i].double_flops / 1e9);
  }
  return svg + "</svg>\n";
}

std::string link_map(const Measurements& measured) {
  if (measured.between.empty()) return "";
  std::map<int, std::string> hosts;
  for (const RankMeasures& m : measured.ranks)
    if (m.first_of_host) hosts[m.rank] = m.host;
  std::map<int, size_t> place;
  for (const auto& [rank, host] : hosts) place.emplace(rank, place.size());
  double most = 0;
  for (const Link& link : measured.between) most = std::max(most, link.bytes_per_second);
  const double cell = std::min(48.0, (kWidth - 2 * kMargin) / static_cast<double>(hosts.size()));
  const double side = 2 * kMargin + cell * static_cast<double>(hosts.size());
  std::string svg = fmt::format(
      "<h2>Links between hosts</h2>\n<svg viewBox=\"0 0 {0:.0f} {0:.0f}\" width=\"{0:.0f}\" "
      "height=\"{0:.0f}\">\n",
      side);
  for (const Link& link : measured.between)
    for (const auto& [row, column] : {std::pair{link.a, link.b}, std::pair{link.b, link.a}})
      svg += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
          "fill=\"hsl({:.0f} 60% 50%)\"><title>{} - {}: {:.1f} MB/s, {:.1f} us</title></rect>\n",
          kMargin + cell * static_cast<double>(place[column]),
          kMargin + cell * static_cast<double>(place[row]), cell - 1, cell - 1,
          120 * link.bytes_per_second / most, escape(hosts[row]), escape(hosts[column]),
          link.bytes_per_second / 1e6, link.latency_seconds * 1e6);
  for (const auto& [rank, host] : hosts)
    svg += fmt::format("<text x=\"0\" y=\"{:.1f}\" font-size=\"10\">{}</text>\n",
                       kMargin + cell * (static_cast<double>(place[rank]) + 0.6), escape(host));
  return svg + "</svg>\n<p>Green is as fast as the fastest, red is slow.</p>\n";
}

}  // namespace

std::string page_of(const Measurements& measured, const std::vector<Finding>& findings) {
  std::string page =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>renkei "
      "check</title>\n<style>body{font-family:sans-serif;margin:2em}td,th{padding:0 1em 0 0;"
      "text-align:left}.fail{color:#b00}.warn{color:#a60}.skip{color:#777}</style></head><body>\n";
  page += fmt::format("<h1>Acceptance test: {}</h1>\n<p>{} ranks, level {}</p>\n",
                      name_of(overall(findings)), measured.ranks.size(), measured.level);
  page += sorted_curve(measured.ranks) + link_map(measured);
  page +=
      "<h2>Findings</h2>\n<table><tr><th>check<th>status<th>rank<th>host<th>value<th>expected"
      "<th>reason</tr>\n";
  for (const Finding& f : findings)
    page += fmt::format(
        "<tr class=\"{0}\"><td>{1}<td>{0}<td>{2}<td>{3}<td>{4} {5}<td>{6}<td>{7}</tr>\n",
        name_of(f.status), escape(f.name), f.rank ? std::to_string(*f.rank) : "", escape(f.host),
        f.value ? fmt::format("{:.4g}", *f.value) : "", f.unit, escape(f.expected),
        escape(f.reason));
  return page + "</table></body></html>\n";
}

}  // namespace renkei::check
