#pragma once

#if defined(__has_feature)
#define RENKEI_HAS_FEATURE(name) __has_feature(name)
#else
#define RENKEI_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_THREAD__) || RENKEI_HAS_FEATURE(thread_sanitizer)
#define RENKEI_THREAD_SANITIZER 1
#else
#define RENKEI_THREAD_SANITIZER 0
#endif

#if defined(__SANITIZE_ADDRESS__) || RENKEI_HAS_FEATURE(address_sanitizer)
#define RENKEI_ADDRESS_SANITIZER 1
#else
#define RENKEI_ADDRESS_SANITIZER 0
#endif
