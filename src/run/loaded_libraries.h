// Which libraries is this process made of? Two of a kind that share symbols compute wrong things
// without a word, so they are looked for before anything is computed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace renkei::run {

// The files of a text in the form of /proc/PID/maps whose names begin with one of the prefixes,
// each once, in the order in which they come up.
std::vector<std::string> mapped_libraries(std::string_view maps,
                                          const std::vector<std::string_view>& prefixes);

// Throws a usage Error for a second libtorch, or one of another version than Renkei was built
// with; returns a warning for a second OpenMP runtime, empty where all is well.
std::string check_libraries(std::string_view maps);
std::string check_loaded_libraries();  // of this process

}  // namespace renkei::run
