//! Target [`ferrostack_fuzz::keystone::review`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferrostack_fuzz::keystone::review(data));
