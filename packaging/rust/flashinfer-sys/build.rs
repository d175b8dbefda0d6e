// SPDX-License-Identifier: Apache-2.0
// Finds libflashinfer: FLASHINFER_LIB_DIR, else pkg-config, else the linker's own folders.
use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=FLASHINFER_LIB_DIR");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    let folder = env::var("FLASHINFER_LIB_DIR").ok().or_else(from_pkg_config);
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
