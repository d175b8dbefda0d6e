// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/fs.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "flashinfer/core/check.h"

namespace flashinfer::fs {
namespace {

[[noreturn]] void fail(const char* what, const std::string& path, int error) {
  throw RuntimeError(str("cannot ", what, " ", path, ": ", std::strerror(error)));
}

void write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = n < 0 ? errno : ENOSPC;
      ::close(fd);
      ::unlink(path.c_str());
      fail("write", path, error);
    }
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

}  // namespace

std::optional<std::string> read_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  struct stat st{};
  std::string bytes;
  bool good = ::fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
  if (good) bytes.resize(static_cast<size_t>(st.st_size));
  size_t have = 0;
  while (good && have < bytes.size()) {
    const ssize_t n = ::read(fd, bytes.data() + have, bytes.size() - have);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) good = false;
    if (n <= 0) break;
    have += static_cast<size_t>(n);
  }
  ::close(fd);
  if (!good) return std::nullopt;
  bytes.resize(have);
  return bytes;
}

void write_plain(const std::string& path, std::string_view bytes, mode_t mode) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (fd < 0) fail("create", path, errno);
  write_all(fd, bytes, path);
  if (::close(fd) != 0) fail("write", path, errno);
}

void write_atomic(const std::string& path, std::string_view bytes, mode_t mode) {
  std::string temporary = path + ".XXXXXX";
  const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) fail("create", temporary, errno);
  write_all(fd, bytes, temporary);
  ::fchmod(fd, mode);
  if (::close(fd) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    fail("write", path, error);
  }
}

void make_dirs(const std::string& path) {
  if (path.empty() || is_dir(path)) return;
  const size_t slash = path.find_last_of('/');
  if (slash != std::string::npos && slash > 0) make_dirs(path.substr(0, slash));
  if (::mkdir(path.c_str(), 0700) != 0 && !(errno == EEXIST && is_dir(path))) fail("make the folder", path, errno);
}

std::string make_temp_dir(const std::string& parent, const std::string& prefix) {
  std::string path = parent + "/" + prefix + "XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) fail("make a folder in", parent, errno);
  return path;
}

bool remove_tree(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  return !error;
}

bool is_dir(const std::string& path) {
  struct stat st{};
  return ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

bool is_file(const std::string& path) {
  struct stat st{};
  return ::stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode);
}

std::vector<std::string> list_dir(const std::string& path) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
    names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string unsafe_folder(const std::string& path, bool sticky_ok) {
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0) return {};
  if (sticky_ok && (st.st_mode & S_ISVTX) != 0) return {};
  if (st.st_uid != ::geteuid() && st.st_uid != 0)
    return str(path, " belongs to user ", st.st_uid, ", not to user ", ::geteuid());
  if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) return str("others can write to ", path, " (chmod go-w it)");
  return {};
}

std::optional<FileId> file_id(const std::string& path) {
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0) return std::nullopt;
  return FileId{static_cast<uint64_t>(st.st_size), st.st_mtim.tv_sec * int64_t{1000000000} + st.st_mtim.tv_nsec};
}

FileLock::FileLock(const std::string& path, double patience_seconds, const std::function<void()>& on_slow) {
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd_ < 0) return;
  // Polled, because flock() has no timeout: 10 ms is little compared with the compiler run of the holder.
  constexpr double kStep = 0.01;
  for (double waited = 0; ::flock(fd_, LOCK_EX | LOCK_NB) != 0; waited += kStep) {
    if (errno == EWOULDBLOCK && waited < patience_seconds) {
      if (on_slow && waited < 1 && waited + kStep >= 1) on_slow();
      ::usleep(static_cast<useconds_t>(kStep * 1e6));
    } else if (errno != EINTR) {
      ::close(fd_);
      fd_ = -1;
      return;
    }
  }
}

FileLock::~FileLock() {
  if (fd_ < 0) return;
  ::flock(fd_, LOCK_UN);  // closing is not enough: a child forked meanwhile holds the same open file
  ::close(fd_);
}

std::string object_of(const void* address) {
  Dl_info info{};
  if (::dladdr(address, &info) == 0 || info.dli_fname == nullptr) return {};
  if (std::strchr(info.dli_fname, '/') != nullptr) return canonical(info.dli_fname);
  return canonical("/proc/self/exe");  // a program found on PATH is listed by its bare name
}

std::string canonical(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  std::string result = real;
  std::free(real);
  return result;
}

}  // namespace flashinfer::fs
