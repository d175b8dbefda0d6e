// SPDX-License-Identifier: Apache-2.0
// Location and content hash of the kernel headers: the hash is the part of the key that makes an edited header a new
// artifact.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace flashinfer::jit {

/// The folder for -I, holding flashinfer/: FLASHINFER_JIT_INCLUDE, else the source tree when this library is in its
/// build folder, else <prefix>/share/flashinfer/include of the installed library. Empty when there is none.
std::string include_root();

/// XXH3-128 in hex, 32 digits.
std::string hash_hex(std::string_view bytes);

/// Hash over path and content of `header` and all that it includes, directly or not, by "..." or <flashinfer/...> from
/// `root` or the including file's folder. Both branches of an #if are included. System headers are not: the compiler's
/// identity stands for them. Cached per process until forget_sources(). RuntimeError: the headers are those that this
/// library was built from, and changed_params() names one.
std::string headers_hash(const std::string& root, const std::string& header);
/// The same, read now.
std::string headers_hash_now(const std::string& root, const std::string& header);
/// Whether `header` or one that it includes (as above) holds one of `words`.
bool headers_hold(const std::string& root, const std::string& header, std::span<const std::string> words);
/// The header with launch parameters (`*params.h`), among `header` and those that it includes, that was changed after
/// the file `library` was written; empty: none. Such a library would launch kernels with structures of another layout.
std::string changed_params(const std::string& root, const std::string& header, const std::string& library);
void forget_sources();

}  // namespace flashinfer::jit

#pragma GCC visibility pop
