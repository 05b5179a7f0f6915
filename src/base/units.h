#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace renkei {

// "512", "64KiB", "1.5GiB", "10MB" -> bytes. KiB, MiB … are powers of 1024, kB, MB … of 1000.
// Throws a usage Error that names the text.
int64_t parse_size(std::string_view text);
std::string format_size(int64_t bytes);  // "1.5 GiB"

// "250ms", "10s", "5min", "2h", or a plain number of seconds.
double parse_duration(std::string_view text);
std::string format_duration(double seconds);  // "250 ms", "3 min 20 s"

// "first:last:*factor" or "first:last:+step", or a single value; each value may be a size.
std::vector<int64_t> parse_sweep(std::string_view text);

// 2626560 -> "2,626,560".
std::string format_count(int64_t count);

}  // namespace renkei
