//! Target [`ferrostack_fuzz::targets::patch_apply`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| ferrostack_fuzz::targets::patch_apply(data));
