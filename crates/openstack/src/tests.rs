//! Helpers of the tests of several modules.

pub(crate) mod testing;
