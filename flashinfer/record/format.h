// SPDX-License-Identifier: Apache-2.0
// Names in a dump, shared by the recorder and the replayer: files, metadata keys, tensor keys, encodings of values.
#pragma once

#pragma GCC visibility push(default)

namespace flashinfer::record {

inline constexpr int kFormatVersion = 1;

// ---- files of a session folder: session.jsonl, one folder per call, the chunk store when DUMP_DEDUP=1 ----
inline constexpr const char* kSessionFile = "session.jsonl";
inline constexpr const char* kMetadataFile = "metadata.jsonl";
inline constexpr const char* kInputsStem =
    "inputs";  // inputs.pt, inputs.safetensors or inputs.chunks (formats/chunks.h)
inline constexpr const char* kOutputsStem = "outputs";
inline constexpr const char* kChunkFolder = "chunks";  // formats/chunks.h

// "tensor_format" and the file's ending
inline constexpr const char* kFormatTorch = "torch";              // .pt
inline constexpr const char* kFormatSafetensors = "safetensors";  // .safetensors
inline constexpr const char* kFormatChunks = "chunks";            // .chunks: names chunks of ../chunks

// ---- tensor keys ----
// arg_<i>, kwarg_<name>; nested <parent>__<i>, <parent>__key_<i>, <parent>__value_<i>; result, result_<i>.
inline constexpr const char* kArgPrefix = "arg_";
inline constexpr const char* kKwargPrefix = "kwarg_";
inline constexpr const char* kResult = "result";
/// In the outputs: content after the call of an argument that the call wrote (roles inout, out, paged inout):
/// after__arg_2.
inline constexpr const char* kAfterPrefix = "after__";
/// Members of the receiver's state (the plan), tensors in the inputs and plain values in input_metadata:
/// self__plan__<member>.
inline constexpr const char* kPlanPrefix = "self__plan__";
/// A paged pool of which only the used pages are stored: <key> is [used, ...], <key>__pages the page numbers (int64,
/// ascending).
inline constexpr const char* kPagesSuffix = "__pages";

// ---- metadata keys of FlashInfer, in its order ----
inline constexpr const char* kFunctionName = "function_name";
inline constexpr const char* kModule = "module";
inline constexpr const char* kCallSequence = "call_sequence";
inline constexpr const char* kTimestamp = "timestamp";
inline constexpr const char* kProcessId = "process_id";
inline constexpr const char* kInputMetadata = "input_metadata";
inline constexpr const char* kOutputMetadata = "output_metadata";
inline constexpr const char* kTensorInfo = "tensor_info";
inline constexpr const char* kInputTensorKeys = "input_tensor_keys";    // in tensor_info
inline constexpr const char* kOutputTensorKeys = "output_tensor_keys";  // in tensor_info
inline constexpr const char* kTensorDetails = "tensor_details";
inline constexpr const char* kTensorFormat = "tensor_format";
inline constexpr const char* kFunctionSignature = "function_signature";
inline constexpr const char* kVersions = "versions";
inline constexpr const char* kExecutionStatus = "execution_status";
inline constexpr const char* kGraphCapture = "graph_capture";
inline constexpr const char* kSelfId = "self_id";
inline constexpr const char* kDumpDir = "dump_dir";
// after kDumpDir, once a call that was captured into a CUDA graph has been flushed; the last key only in the snapshot's
// own record
inline constexpr const char* kFlushed = "graph_capture_flushed";         // true
inline constexpr const char* kFlushIndex = "graph_capture_flush_index";  // from 1
inline constexpr const char* kSnapshotDir =
    "graph_capture_snapshot_dir";  // <folder of the call>/graph_flushes/flush_0001
inline constexpr const char* kBaseDumpDir = "graph_capture_base_dump_dir";
inline constexpr const char* kFlushesFolder = "graph_flushes";

// execution_status
inline constexpr const char* kInputsSaved = "inputs_saved";
inline constexpr const char* kCompleted = "completed";
inline constexpr const char* kFailed = "failed";
inline constexpr const char* kPendingFlush =
    "graph_capture_pending_flush";  // both records of a captured call until it is flushed

// ---- additional metadata keys ----
inline constexpr const char* kFormat = "format_version";  // kFormatVersion
inline constexpr const char* kSequence = "sequence";      // over all functions and threads of the process, from 1
inline constexpr const char* kArgNames = "arg_names";     // parameter names of the positional arguments, in order
inline constexpr const char* kOpVersion = "op_version";   // Op::version
inline constexpr const char* kError = "error";            // with kFailed: {"type": "ValueError", "message": "..."}
inline constexpr const char* kOutputsLost =
    "outputs_lost";  // with kCompleted: why the outputs are missing (a limit, a full disk)
/// List of keys, with kGraphCapture: inputs that the call itself overwrites, so that a flush stores their content after
/// the call.
inline constexpr const char* kOverwritten = "graph_capture_overwritten";
inline constexpr const char* kErrorType = "type";
inline constexpr const char* kErrorMessage = "message";
inline constexpr const char* kStartNs = "start_ns";  // CLOCK_MONOTONIC around the kernel
inline constexpr const char* kEndNs = "end_ns";
inline constexpr const char* kDurationUs = "duration_us";
inline constexpr const char* kWallTimeNs = "wall_time_ns";  // CLOCK_REALTIME at the start of the call; orders processes
inline constexpr const char* kThreadId = "thread_id";
inline constexpr const char* kStream = "stream";
inline constexpr const char* kHost = "host";
inline constexpr const char* kRank = "rank";
/// Of a collective call: {"name", "rank", "size", "workspace": {"argument", "id", ...}}. The workspace is an object,
/// with "class" and "members" that are arguments of the class's constructor, or memory of comm::share, of "bytes" a
/// rank. A constructor's call has no workspace.
inline constexpr const char* kGroup = "group";
inline constexpr const char* kGroupName = "name";  // in group
inline constexpr const char* kGroupSize = "size";
inline constexpr const char* kGroupWorkspace = "workspace";
inline constexpr const char* kArgument = "argument";  // in group.workspace
inline constexpr const char* kClass = "class";
inline constexpr const char* kMembers = "members";
inline constexpr const char* kWindowBytes = "bytes";
/// Members of a workspace's state, and arguments of its constructor.
inline constexpr const char* kStateGroup = "group";
inline constexpr const char* kStateRank = "rank";
inline constexpr const char* kStateSize = "world_size";
inline constexpr const char* kStateId = "id";      // the same on all ranks, and of no other workspace
inline constexpr const char* kGroupCall = "call";  // an argument: what tells calls with this workspace apart, the same
                                                   // on all ranks; absent: the call needs no other rank
inline constexpr const char* kGroupRanks = "ranks";  // an argument: bit r: rank r takes part; absent: all do
inline constexpr const char* kDeviceModel = "device_model";
inline constexpr const char* kDriver = "driver_version";
inline constexpr const char* kBackend = "backend";  // the selected candidate
inline constexpr const char* kConfig = "config";
inline constexpr const char* kGitCommit = "git_commit";
inline constexpr const char* kDepth = "depth";           // 0: not inside another recorded call
inline constexpr const char* kSelfClass = "self_class";  // "BatchDecodeWithPagedKVCacheWrapper"
inline constexpr const char* kPlanned = "self_planned";  // bool: plan() had run

// in tensor_details.<key>, after FlashInfer's shape, dtype, stride, device (all of the caller's tensor, not of the
// file)
inline constexpr const char* kShape = "shape";
inline constexpr const char* kDType = "dtype";  // "torch.bfloat16"
inline constexpr const char* kStride = "stride";
inline constexpr const char* kDevice = "device";
inline constexpr const char* kStorageOffset =
    "storage_offset";                                 // elements from the start of the memory it shares with others
inline constexpr const char* kStorageId = "storage";  // int; tensors of the call with the same number share memory
inline constexpr const char* kChecksum = "checksum";  // formats::checksum_text of the elements stored under the key
inline constexpr const char* kRole = "role";          // in, inout, out, scratch, paged, paged_inout, result
inline constexpr const char* kStored =
    "stored";  // kStoredPages, kStoredBytes or kStoredNothing; absent: the whole tensor
inline constexpr const char* kStoredPages = "pages";
inline constexpr const char* kStoredBytes =
    "bytes";  // u8 [..., bytes of an element]: an element type this library does not support
inline constexpr const char* kStoredNothing = "description";  // a workspace: shape and dtype only
inline constexpr const char* kSameAs = "same_as";             // identical to the view of that key: not stored twice
inline constexpr const char* kAddress = "address";            // "0x...", of the first element
inline constexpr const char* kPageDim = "page_dim";           // with kStoredPages: the dimension of the pages

// ---- values ("type" of a tagged object) ----
inline constexpr const char* kType = "type";
inline constexpr const char* kValue = "value";
inline constexpr const char* kTypeTensor = "torch.Tensor";  // nested; with tensor_key
inline constexpr const char* kTensorKey = "tensor_key";
inline constexpr const char* kTypeDType = "torch.dtype";  // {"type", "value": "torch.float16"}
inline constexpr const char* kRepr = "repr";              // of all values without another encoding, as FlashInfer does
inline constexpr const char* kTypeDevice = "device";      // {"type", "repr": "cuda:0"}
inline constexpr const char* kTypeEnum = "enum";          // {"type", "name": "Class.NAME", "value": v}
inline constexpr const char* kTypeGenerator =
    "Generator";  // {"type", "repr", "seed": n, "offset": n}, as before the call
/// A tuple of this type is PyTorch's generator: its text, its seed and its state (u8), which is stored as a tensor.
inline constexpr const char* kTypeTorchGenerator =
    "torch.Generator";  // {"type": "Generator", "repr", "seed", "state": nested tensor}
inline constexpr const char* kTypeFp4Tensor = "FP4Tensor";  // a tuple: data, scale, scale_start_index, original_shape
inline constexpr const char* kState = "state";
inline constexpr const char* kSeed = "seed";
inline constexpr const char* kOffset = "offset";
inline constexpr const char* kTypeFloat = "float";      // {"type", "value": "inf" | "-inf" | "nan"}
inline constexpr const char* kTypeComplex = "complex";  // {"type", "repr": "(1+2j)", "value": [re, im]}
inline constexpr const char* kTypeList = "list";        // {"type", "length", "items", "truncated"}
inline constexpr const char* kTypeTuple = "tuple";
inline constexpr const char* kTypeDict = "dict";  // items: [{"key", "value"}]
// Our wrappers: {"type": "<Class>", "repr": "<flashinfer.Class object at 0x...>", "module": "flashinfer.decode",
// "object_id": n}.
inline constexpr const char* kObjectId = "object_id";

}  // namespace flashinfer::record

#pragma GCC visibility pop
