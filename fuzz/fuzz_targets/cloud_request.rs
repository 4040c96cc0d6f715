//! Target [`ferrostack_fuzz::cloud::request`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferrostack_fuzz::cloud::request(data));
