//! Tests of the parts together.

mod whole;
