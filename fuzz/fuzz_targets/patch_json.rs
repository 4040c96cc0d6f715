//! Target [`ferrostack_fuzz::targets::patch_json`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferrostack_fuzz::targets::patch_json(data));
