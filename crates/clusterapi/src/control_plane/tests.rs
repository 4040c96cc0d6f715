//! Tests of what the parts do together.

mod whole;
