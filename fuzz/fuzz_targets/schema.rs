//! Target [`ferrostack_fuzz::targets::schema`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferrostack_fuzz::targets::schema(data));
