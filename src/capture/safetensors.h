// safetensors files: 8 bytes that give the length of a JSON header, the header, which has type,
// sizes and place of each tensor, and the bytes of all tensors, without gaps.
#pragma once

#include <map>
#include <string>

#include "capture/named_tensors.h"

namespace renkei::capture {

// Throws data Errors. The tensors keep the file open.
NamedTensors read_safetensors(const std::string& path);
NamedTensors read_safetensors(const std::shared_ptr<const data::ByteFile>& file);

// The names in the order in which a file has them, and in which writing asks for their values.
std::vector<std::string> order_in_safetensors(const NamedTensors& tensors);

// What a file of these tensors begins with, for those who write the values themselves, in that
// order and without gaps; `notes` are texts for other programs ("format": "pt").
std::string safetensors_header(const NamedTensors& tensors,
                               const std::map<std::string, std::string>& notes = {});

// Written aside and renamed, a few MiB at a time; larger elements first, so that all are aligned.
void write_safetensors(const std::string& path, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& notes = {});

}  // namespace renkei::capture
