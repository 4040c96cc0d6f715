//! The multicall binary.
#![allow(dead_code)]
mod data_dir;
mod manifest;
mod template;
fn main() {}
