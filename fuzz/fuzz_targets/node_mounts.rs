//! Target [`ferrostack_fuzz::node::mounts`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferrostack_fuzz::node::mounts(data));
