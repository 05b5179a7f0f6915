#pragma once

#if defined(__SANITIZE_THREAD__)
#define RENKEI_THREAD_SANITIZER 1
#elif defined(__has_feature)
#define RENKEI_THREAD_SANITIZER __has_feature(thread_sanitizer)
#else
#define RENKEI_THREAD_SANITIZER 0
#endif
