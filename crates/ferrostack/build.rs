//! Linker options of the binary.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Functions of different types often have the same code, of which LLD keeps one. It is the linker of this target in
    // Rust's releases; others do not know the option.
    let target = env::var("TARGET").unwrap_or_default();
    let is_release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if is_release && target == "x86_64-unknown-linux-gnu" {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
    }
}
