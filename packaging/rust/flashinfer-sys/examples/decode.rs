// SPDX-License-Identifier: Apache-2.0
//! One decode step: two requests over a paged cache, plan once and run once, checked against a plain loop.
//!     cargo run --offline --example decode
use flashinfer_sys::*;
use std::ffi::{c_char, c_void, CStr};
use std::ptr;

const REQUESTS: usize = 2;
const HEADS: usize = 4;
const KV_HEADS: usize = 2;
const DIM: usize = 64;
const PAGE: usize = 4;
const PAGES: usize = 5;

struct Tensor<T> {
    data: Vec<T>,
    shape: Vec<i64>,
}
impl<T> Tensor<T> {
    fn view(&mut self, code: u8) -> DLTensor {
        DLTensor {
            data: if self.data.is_empty() { ptr::null_mut() } else { self.data.as_mut_ptr() as *mut c_void },
            device: DLDevice { device_type: DL_CPU, device_id: 0 },
            ndim: self.shape.len() as i32,
            dtype: DLDataType { code, bits: 8 * std::mem::size_of::<T>() as u8, lanes: 1 },
            shape: self.shape.as_mut_ptr(),
            strides: ptr::null_mut(),
            byte_offset: 0,
        }
    }
}

fn check(status: flashinfer_status) {
    if status != FLASHINFER_OK {
        let text = unsafe { CStr::from_ptr(flashinfer_last_error()) };
        eprintln!("{}", text.to_string_lossy());
        std::process::exit(1);
    }
}

/// softmax(q k / sqrt(d)) v of one head, in double.
fn expected(q: &[f32], pool: &[f32], pages: &[i32], tokens: usize, request: usize, head: usize) -> Vec<f64> {
    let kv_head = head / (HEADS / KV_HEADS);
    let at = |t: usize, value: usize, d: usize| {
        let page = pages[t / PAGE] as usize;
        pool[(((page * 2 + value) * PAGE + t % PAGE) * KV_HEADS + kv_head) * DIM + d] as f64
    };
    let row = &q[(request * HEADS + head) * DIM..][..DIM];
    let weights: Vec<f64> = (0..tokens)
        .map(|t| ((0..DIM).map(|d| row[d] as f64 * at(t, 0, d)).sum::<f64>() / (DIM as f64).sqrt()).exp())
        .collect();
    let sum: f64 = weights.iter().sum();
    (0..DIM).map(|d| (0..tokens).map(|t| weights[t] * at(t, 1, d)).sum::<f64>() / sum).collect()
}

fn main() {
    let mut q = Tensor {
        data: (0..REQUESTS * HEADS * DIM).map(|i| (0.37 * i as f64).sin() as f32).collect(),
        shape: vec![REQUESTS as i64, HEADS as i64, DIM as i64],
    };
    let mut pool = Tensor {
        data: (0..PAGES * 2 * PAGE * KV_HEADS * DIM).map(|i| (0.11 * i as f64).cos() as f32).collect(),
        shape: vec![PAGES as i64, 2, PAGE as i64, KV_HEADS as i64, DIM as i64], // K, then V; layout NHD
    };
    let mut indptr = Tensor { data: vec![0i32, 3, 5], shape: vec![3] };
    let mut pages = Tensor { data: vec![4i32, 1, 0, 2, 3], shape: vec![5] };
    let mut last = Tensor { data: vec![2i32, 3], shape: vec![2] };
    let mut workspace = Tensor { data: Vec::<u8>::new(), shape: vec![0] };
    let (q_t, pool_t) = (q.view(DL_FLOAT), pool.view(DL_FLOAT));
    let (indptr_t, pages_t, last_t) = (indptr.view(DL_INT), pages.view(DL_INT), last.view(DL_INT));
    let workspace_t = workspace.view(DL_UINT);

    let mut decode = ptr::null_mut();
    let init = [flashinfer_value::tensor(&workspace_t), flashinfer_value::string(c"NHD")];
    check(unsafe { flashinfer_object_new(c"BatchDecodeWithPagedKVCacheWrapper".as_ptr(), ptr::null(), init.as_ptr(), 2, &mut decode) });

    let mut names: [*const c_char; 9] = [ptr::null(); 9];
    names[8] = c"q_data_type".as_ptr();
    let plan = [
        flashinfer_value::object(decode),
        flashinfer_value::tensor(&indptr_t),
        flashinfer_value::tensor(&pages_t),
        flashinfer_value::tensor(&last_t),
        flashinfer_value::int(HEADS as i64),
        flashinfer_value::int(KV_HEADS as i64),
        flashinfer_value::int(DIM as i64),
        flashinfer_value::int(PAGE as i64),
        flashinfer_value::string(c"float32"),
    ];
    check(unsafe {
        flashinfer_call(c"BatchDecodeWithPagedKVCacheWrapper.plan".as_ptr(), names.as_ptr(), plan.as_ptr(), plan.len() as i32, ptr::null_mut())
    });

    let mut result = ptr::null_mut();
    let run = [flashinfer_value::object(decode), flashinfer_value::tensor(&q_t), flashinfer_value::tensor(&pool_t)];
    check(unsafe { flashinfer_call(c"BatchDecodeWithPagedKVCacheWrapper.run".as_ptr(), ptr::null(), run.as_ptr(), 3, &mut result) });
    let out = unsafe {
        let value = &*flashinfer_result_value(result);
        assert_eq!(value.kind, FLASHINFER_TENSOR);
        std::slice::from_raw_parts((*value.value.tensor).data as *const f32, REQUESTS * HEADS * DIM)
    };

    let mut worst = 0.0f64;
    for request in 0..REQUESTS {
        let (begin, end) = (indptr.data[request] as usize, indptr.data[request + 1] as usize);
        let tokens = (end - begin - 1) * PAGE + last.data[request] as usize;
        for head in 0..HEADS {
            let e = expected(&q.data, &pool.data, &pages.data[begin..end], tokens, request, head);
            for d in 0..DIM {
                worst = worst.max((e[d] - out[(request * HEADS + head) * DIM + d] as f64).abs());
            }
        }
    }
    unsafe {
        flashinfer_result_free(result);
        flashinfer_object_free(decode);
    }
    println!("largest difference from the plain loop: {worst:.1e}");
    assert!(worst < 1e-5);
}
