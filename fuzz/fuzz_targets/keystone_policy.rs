//! Target [`ferrostack_fuzz::keystone::policy`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferrostack_fuzz::keystone::policy(data));
