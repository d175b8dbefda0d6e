// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/formats/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "flashinfer/core/check.h"
#include "flashinfer/core/context.h"

namespace flashinfer::formats {
namespace {

constexpr size_t kDirect = 32 << 10;

[[noreturn]] void throw_errno(const char* what, const std::filesystem::path& path, int error) {
  throw RuntimeError(str(what, " ", path.string(), ": ", std::strerror(error)));
}

}  // namespace

std::shared_ptr<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) throw_errno("cannot open", path, errno);
  struct stat st;
  if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
    ::close(fd);
    throw ValueError(str(path.string(), " is not a regular file"));
  }
  std::shared_ptr<MappedFile> file(new MappedFile);
  if (st.st_size > 0) {
    void* p = ::mmap(nullptr, static_cast<size_t>(st.st_size), PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    const int error = errno;
    ::close(fd);
    if (p == MAP_FAILED) throw_errno("cannot map", path, error);
    file->data_ = static_cast<uint8_t*>(p);
    file->size_ = static_cast<size_t>(st.st_size);
  } else {
    ::close(fd);
  }
  return file;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

FileSizeLimit::FileSizeLimit() {
  sigset_t limit;
  sigemptyset(&limit);
  sigaddset(&limit, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &limit, &old_mask_);
}

FileSizeLimit::~FileSizeLimit() {
  if (sigismember(&old_mask_, SIGXFSZ)) return;
  sigset_t limit;
  sigemptyset(&limit);
  sigaddset(&limit, SIGXFSZ);
  const timespec now{};
  while (sigtimedwait(&limit, nullptr, &now) > 0) {  // the signal of the failed write
  }
  pthread_sigmask(SIG_SETMASK, &old_mask_, nullptr);
}

FileWriter::FileWriter(std::filesystem::path path) : path_(std::move(path)), temporary_(path_.string() + ".tmp") {
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd_ < 0) throw_errno("cannot create", temporary_, errno);
  pending_.reserve(kDirect);
}

FileWriter::~FileWriter() {
  if (fd_ >= 0) ::close(fd_);
  if (!committed_) ::unlink(temporary_.c_str());
}

void FileWriter::fail(const char* what, int error) { throw_errno(what, path_, error); }

void FileWriter::flush_with(const void* data, size_t bytes) {
  iovec parts[2] = {{pending_.data(), pending_.size()}, {const_cast<void*>(data), bytes}};
  iovec* next = parts;
  int count = bytes > 0 ? 2 : 1;
  while (count > 0) {
    if (next->iov_len == 0) {
      ++next, --count;
      continue;
    }
    const ssize_t n = ::writev(fd_, next, count);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("cannot write", n < 0 ? errno : ENOSPC);
    size_t left = static_cast<size_t>(n);
    while (count > 0 && left >= next->iov_len) left -= next->iov_len, ++next, --count;
    if (count > 0) {
      next->iov_base = static_cast<char*>(next->iov_base) + left;
      next->iov_len -= left;
    }
  }
  pending_.clear();
}

void FileWriter::write(const void* data, size_t bytes) {
  position_ += bytes;
  if (bytes < kDirect && pending_.size() + bytes <= kDirect) {
    const uint8_t* p = static_cast<const uint8_t*>(data);
    pending_.insert(pending_.end(), p, p + bytes);
  } else {
    flush_with(data, bytes);
  }
}

void FileWriter::write_beside(const uint8_t* data, size_t bytes,
                              const std::function<void(const uint8_t*, size_t)>& also) {
  constexpr size_t kWorthAThread = 1 << 20, kPiece = 128 << 10;
  if (bytes < kWorthAThread) {
    also(data, bytes);
    return write(data, bytes);
  }
  parallel_for(2, [&](int64_t task) {
    if (task == 0) {
      const FileSizeLimit limit;  // it may run on a thread of the pool
      write(data, bytes);
    } else {
      for (size_t at = 0; at < bytes; at += kPiece) also(data + at, std::min(kPiece, bytes - at));
    }
  });
}

void FileWriter::commit() {
  flush_with(nullptr, 0);
  const int closed = ::close(fd_);
  fd_ = -1;
  if (closed != 0) fail("cannot close", errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot rename to", errno);
  committed_ = true;
}

}  // namespace flashinfer::formats
