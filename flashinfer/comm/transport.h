// SPDX-License-Identifier: Apache-2.0
// What carries the bytes of a window between ranks: shared memory, TCP or MPI. Each rank has an image of the whole
// window (WindowLayout); in shared memory all images are the same bytes. Private to comm/.
//
// What a rank puts or posts for another one arrives there in this order, when that one calls progress(). Ranks read and
// write their images by the rules of window.h, which are those of shared memory: so bytes may arrive before the phase
// that they were put for.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "flashinfer/comm/channel.h"
#include "flashinfer/comm/group.h"

namespace flashinfer::comm {

class Transport {
 public:
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// This rank's image, which lives as long as the transport.
  virtual std::byte* image() const = 0;
  virtual bool is_shared() const { return false; }
  /// [offset, offset + bytes) of this image will be there in the rank's. Window::put() says how long they stay.
  virtual void put(int rank, size_t offset, size_t bytes) = 0;
  /// The same with a copy of at most kMostPosted bytes, which may change at once.
  virtual void post(int rank, size_t offset, size_t bytes) = 0;
  static constexpr size_t kMostPosted = 1024;
  /// Sends and receives what is possible now.
  virtual void progress() = 0;
  /// Returns when something may have arrived, or after some milliseconds.
  virtual void sleep() = 0;
  /// All that was put and posted for the rank has left this process, or never will.
  virtual bool sent(int rank) const = 0;
  /// Why no more bytes come from the rank, all that it sent having arrived; empty: some may.
  virtual std::string why_closed(int rank) const = 0;

 protected:
  Transport() = default;
};

/// Memory of this process for an image, all zero. RuntimeError: there is none.
class Image {
 public:
  explicit Image(size_t bytes);
  ~Image();
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  /// The memory stays when the object goes: something may still read it.
  void leave() { data_ = nullptr; }

 private:
  std::byte* data_;
  size_t bytes_;
};

/// `memory`: of all ranks, mapped and this rank's part of it allocated. RuntimeError.
std::unique_ptr<Transport> share_memory(int memory, size_t bytes, size_t own_offset, size_t own_bytes);
/// Connects each two ranks by a socket. Collective; `what` names the call. RuntimeError: a rank that does not, in time.
std::unique_ptr<Transport> connect_by_tcp(Group& group, const std::string& what, bool one_machine, size_t bytes);
/// The ranks as those of MPI_COMM_WORLD. Collective. RuntimeError: there is no MPI, or they are not.
std::unique_ptr<Transport> connect_by_mpi(Group& group, const std::string& what, size_t bytes);

}  // namespace flashinfer::comm
