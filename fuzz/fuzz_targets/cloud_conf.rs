//! Target [`ferrostack_fuzz::conf::file`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferrostack_fuzz::conf::file(data));
