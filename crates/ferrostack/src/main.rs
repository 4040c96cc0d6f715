//! The multicall binary.
fn main() {}
