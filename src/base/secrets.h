#pragma once

#include <string>
#include <string_view>

namespace renkei {

// The text as it may be shown and kept: passwords in addresses (s3://user:PASSWORD@host) and the
// values of parameters that sign or authorise (…&X-Amz-Signature=…, token=…) become "***".
std::string without_secrets(std::string_view text);

}  // namespace renkei
