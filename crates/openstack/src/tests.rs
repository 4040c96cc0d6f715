//! What the tests of several modules use.

pub(crate) mod testing;
