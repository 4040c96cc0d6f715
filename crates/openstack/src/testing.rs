//! A cloud for tests.
