//! Target [`ferrostack_fuzz::clouds::yaml`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferrostack_fuzz::clouds::yaml(data));
