//! Target [`ferrostack_fuzz::node::disk`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferrostack_fuzz::node::disk(data));
