//! Target [`ferrostack_fuzz::frames::body`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferrostack_fuzz::frames::body(data));
