//! Target [`ferrostack_fuzz::clouds::bundle`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferrostack_fuzz::clouds::bundle(data));
