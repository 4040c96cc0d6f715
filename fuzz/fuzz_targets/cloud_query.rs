//! Target [`ferrostack_fuzz::cloud::query`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferrostack_fuzz::cloud::query(data));
