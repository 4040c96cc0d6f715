//! Target [`ferrostack_fuzz::targets::selector`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferrostack_fuzz::targets::selector(data));
