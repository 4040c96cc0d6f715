//! Target [`ferrostack_fuzz::machines::user_data`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferrostack_fuzz::machines::user_data(data));
