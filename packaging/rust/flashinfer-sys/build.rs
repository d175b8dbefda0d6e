// SPDX-License-Identifier: Apache-2.0
// Finds libflashinfer: FLASHINFER_LIB_DIR, else pkg-config, else the linker's own folders, with a warning.
use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=FLASHINFER_LIB_DIR");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    let named = env::var("FLASHINFER_LIB_DIR").ok();
    if let Some(folder) = &named {
        if !["so", "a"].iter().any(|kind| Path::new(folder).join(format!("libflashinfer.{kind}")).exists()) {
            panic!("FLASHINFER_LIB_DIR is '{folder}', which has no libflashinfer.so or libflashinfer.a: name the lib folder of an installation of flashinfer-cpp");
        }
    }
    let folder = named.or_else(from_pkg_config);
    if folder.is_none() {
        println!("cargo:warning=flashinfer-sys: neither FLASHINFER_LIB_DIR nor pkg-config (PKG_CONFIG_PATH) tells where libflashinfer is");
    }
    if let Some(folder) = folder {
        println!("cargo:rustc-link-search=native={folder}");
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
        println!("cargo:lib_dir={folder}");
    }
    println!("cargo:rustc-link-lib=dylib=flashinfer");
}

fn from_pkg_config() -> Option<String> {
    let done = Command::new("pkg-config").args(["--variable=libdir", "flashinfer"]).output().ok()?;
    let folder = String::from_utf8(done.stdout).ok()?.trim().to_string();
    (done.status.success() && !folder.is_empty()).then_some(folder)
}
