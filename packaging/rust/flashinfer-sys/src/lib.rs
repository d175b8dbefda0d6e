// SPDX-License-Identifier: Apache-2.0
//! The declarations of `flashinfer/ffi/flashinfer_c.h`, whose comments say what each does, and constructors of values.
//! `examples/decode.rs` decodes one step over a paged cache.
#![allow(non_camel_case_types)]
#![no_std]

use core::ffi::{c_char, c_int, c_void};

/// DLPack's description of a tensor: the caller's memory, not copied.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DLDevice {
    pub device_type: i32,
    pub device_id: i32,
}
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DLDataType {
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
}
#[repr(C)]
pub struct DLTensor {
    pub data: *mut c_void,
    pub device: DLDevice,
    pub ndim: i32,
    pub dtype: DLDataType,
    pub shape: *mut i64,
    /// In elements; null: compact, row-major.
    pub strides: *mut i64,
    pub byte_offset: u64,
}
pub const DL_CPU: i32 = 1;
pub const DL_CUDA: i32 = 2;
pub const DL_INT: u8 = 0;
pub const DL_UINT: u8 = 1;
pub const DL_FLOAT: u8 = 2;
pub const DL_BFLOAT: u8 = 4;

#[repr(C)]
pub struct flashinfer_object {
    _private: [u8; 0],
}
#[repr(C)]
pub struct flashinfer_generator {
    _private: [u8; 0],
}
#[repr(C)]
pub struct flashinfer_result {
    _private: [u8; 0],
}

pub const FLASHINFER_NONE: c_int = 0;
pub const FLASHINFER_BOOL: c_int = 1;
pub const FLASHINFER_INT: c_int = 2;
pub const FLASHINFER_FLOAT: c_int = 3;
pub const FLASHINFER_STRING: c_int = 4;
pub const FLASHINFER_TENSOR: c_int = 5;
pub const FLASHINFER_LIST: c_int = 6;
pub const FLASHINFER_TUPLE: c_int = 7;
pub const FLASHINFER_OBJECT: c_int = 8;
pub const FLASHINFER_GENERATOR: c_int = 9;

#[repr(C)]
#[derive(Clone, Copy)]
pub union flashinfer_value_as {
    pub integer: i64,
    pub number: f64,
    pub string: *const c_char,
    pub tensor: *const DLTensor,
    pub items: *const flashinfer_value,
    pub object: *mut flashinfer_object,
    pub generator: *mut flashinfer_generator,
}
/// An argument or a result. What it points to must live until the call returns.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct flashinfer_value {
    pub kind: c_int,
    pub count: i32,
    pub value: flashinfer_value_as,
}

impl flashinfer_value {
    pub const fn none() -> Self {
        Self { kind: FLASHINFER_NONE, count: 0, value: flashinfer_value_as { integer: 0 } }
    }
    pub const fn bool(b: bool) -> Self {
        Self { kind: FLASHINFER_BOOL, count: 0, value: flashinfer_value_as { integer: b as i64 } }
    }
    pub const fn int(i: i64) -> Self {
        Self { kind: FLASHINFER_INT, count: 0, value: flashinfer_value_as { integer: i } }
    }
    pub const fn float(d: f64) -> Self {
        Self { kind: FLASHINFER_FLOAT, count: 0, value: flashinfer_value_as { number: d } }
    }
    pub const fn string(s: &core::ffi::CStr) -> Self {
        Self { kind: FLASHINFER_STRING, count: 0, value: flashinfer_value_as { string: s.as_ptr() } }
    }
    pub const fn tensor(t: *const DLTensor) -> Self {
        Self { kind: FLASHINFER_TENSOR, count: 0, value: flashinfer_value_as { tensor: t } }
    }
    pub const fn tuple(items: &[flashinfer_value]) -> Self {
        Self { kind: FLASHINFER_TUPLE, count: items.len() as i32, value: flashinfer_value_as { items: items.as_ptr() } }
    }
    pub const fn object(o: *mut flashinfer_object) -> Self {
        Self { kind: FLASHINFER_OBJECT, count: 0, value: flashinfer_value_as { object: o } }
    }
}

/// 0, or the kind of the error that `flashinfer_last_error` describes.
pub type flashinfer_status = c_int;
pub const FLASHINFER_OK: flashinfer_status = 0;
pub const FLASHINFER_VALUE_ERROR: flashinfer_status = 1;
pub const FLASHINFER_TYPE_ERROR: flashinfer_status = 2;
pub const FLASHINFER_KEY_ERROR: flashinfer_status = 3;
pub const FLASHINFER_RUNTIME_ERROR: flashinfer_status = 4;
pub const FLASHINFER_NOT_IMPLEMENTED_ERROR: flashinfer_status = 5;
pub const FLASHINFER_ASSERTION_ERROR: flashinfer_status = 6;
pub const FLASHINFER_INTERNAL_ERROR: flashinfer_status = 7;

pub type flashinfer_task = Option<unsafe extern "C" fn(arg: *mut c_void, index: i64)>;
pub type flashinfer_run_tasks = Option<unsafe extern "C" fn(this: *mut c_void, n: i64, task: flashinfer_task, arg: *mut c_void)>;

extern "C" {
    pub fn flashinfer_last_error() -> *const c_char;
    pub fn flashinfer_call(
        op: *const c_char,
        names: *const *const c_char,
        values: *const flashinfer_value,
        n: i32,
        result: *mut *mut flashinfer_result,
    ) -> flashinfer_status;
    pub fn flashinfer_result_value(result: *const flashinfer_result) -> *const flashinfer_value;
    pub fn flashinfer_result_free(result: *mut flashinfer_result);
    pub fn flashinfer_object_new(
        class_name: *const c_char,
        names: *const *const c_char,
        values: *const flashinfer_value,
        n: i32,
        object: *mut *mut flashinfer_object,
    ) -> flashinfer_status;
    pub fn flashinfer_object_free(object: *mut flashinfer_object);
    pub fn flashinfer_generator_new(seed: u64, offset: u64) -> *mut flashinfer_generator;
    pub fn flashinfer_generator_free(generator: *mut flashinfer_generator);
    pub fn flashinfer_op_count() -> i32;
    pub fn flashinfer_op_name(index: i32) -> *const c_char;
    pub fn flashinfer_op_signature(op: *const c_char) -> *const c_char;
    pub fn flashinfer_version() -> *const c_char;
    pub fn flashinfer_commit() -> *const c_char;
    pub fn flashinfer_describe_ops() -> *const c_char;
    pub fn flashinfer_observed() -> c_int;
    pub fn flashinfer_record_start(level: i32, dump_dir: *const c_char) -> flashinfer_status;
    pub fn flashinfer_record_stop() -> flashinfer_status;
    pub fn flashinfer_record_set(setting: *const c_char) -> flashinfer_status;
    pub fn flashinfer_record_level() -> i32;
    pub fn flashinfer_record_restart() -> flashinfer_status;
    pub fn flashinfer_flush_graph_dumps(synchronize: i32, graph: u64) -> i64;
    pub fn flashinfer_clear_graph_dumps() -> i64;
    pub fn flashinfer_add_version(name: *const c_char, version: *const c_char) -> flashinfer_status;
    pub fn flashinfer_set_executor(run: flashinfer_run_tasks, this: *mut c_void, threads: i32);
}
