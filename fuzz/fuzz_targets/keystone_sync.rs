//! Target [`ferrostack_fuzz::keystone::sync`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferrostack_fuzz::keystone::sync(data));
