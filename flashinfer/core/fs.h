// SPDX-License-Identifier: Apache-2.0
// Files and folders for caches: atomic writes, folders that only this user can write, a lock between processes.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)

namespace flashinfer::fs {

/// The whole file, or nullopt when it cannot be read (missing, a folder, no permission).
std::optional<std::string> read_file(const std::string& path);
/// Writes `path` through a temporary file in the same folder and a rename. RuntimeError with the errno text.
void write_atomic(const std::string& path, std::string_view bytes, mode_t mode = 0600);
/// Writes a file that is not visible before its folder is published. RuntimeError with the errno text.
void write_plain(const std::string& path, std::string_view bytes, mode_t mode = 0600);

/// mkdir -p, mode 0700 for new folders. RuntimeError with the errno text.
void make_dirs(const std::string& path);
/// A new folder `<parent>/<prefix>XXXXXX`, mode 0700. RuntimeError with the errno text.
std::string make_temp_dir(const std::string& parent, const std::string& prefix);
/// Removes a tree without following links; never throws. False when something remains.
bool remove_tree(const std::string& path);
bool is_dir(const std::string& path);
bool is_file(const std::string& path);
/// Names in a folder, sorted, without . and ..; empty when it cannot be read.
std::vector<std::string> list_dir(const std::string& path);

/// Why files in this folder must not be trusted: it belongs to another user (root excepted) or others can write to it.
/// Empty: it is safe, or does not exist. With `sticky_ok` a world-writable folder with the sticky bit passes (a parent
/// such as /tmp).
std::string unsafe_folder(const std::string& path, bool sticky_ok = false);

struct FileId {
  uint64_t bytes = 0;
  int64_t mtime_ns = 0;
};
/// Size and modification time of the file behind `path`; nullopt when there is none.
std::optional<FileId> file_id(const std::string& path);

/// An exclusive lock on a file between processes (and between threads: each object opens the file separately). Waits at
/// most `patience_seconds`; `on_slow` is called once after a second. Where the file system has no locks, or after the
/// timeout (a holder that hangs), held() is false and the caller proceeds without the lock.
class FileLock {
 public:
  explicit FileLock(const std::string& path, double patience_seconds = 300, const std::function<void()>& on_slow = {});
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  bool held() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// The file that holds `address` (a function of this library): the .so, or the program when linked statically.
/// Absolute.
std::string object_of(const void* address);
/// Absolute, without links; the path itself when it does not exist.
std::string canonical(const std::string& path);

}  // namespace flashinfer::fs

#pragma GCC visibility pop
