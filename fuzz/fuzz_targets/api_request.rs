//! Target [`ferrostack_fuzz::api::request`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferrostack_fuzz::api::request(data));
