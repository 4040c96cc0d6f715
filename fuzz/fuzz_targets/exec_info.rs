//! Target [`ferrostack_fuzz::keystone::exec_info`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferrostack_fuzz::keystone::exec_info(data));
