// State dicts that torch.save wrote (.pt, .pth, .bin), read without executing anything: only
// tensors in dictionaries are understood, and what else a file would call is refused by its name.
#pragma once

#include <string>

#include "capture/named_tensors.h"

namespace renkei::capture {

// The tensors of a state dict; of a checkpoint those of the one entry that is a state dict
// ("model", "state_dict"). Throws data Errors. The tensors keep the file open.
NamedTensors read_state_dict(const std::string& path);
NamedTensors read_state_dict(std::shared_ptr<const data::ByteFile> file);

// As torch.save would write them, for torch.load(weights_only=True). Written aside and renamed.
void write_state_dict(const std::string& path, const NamedTensors& tensors);

}  // namespace renkei::capture
