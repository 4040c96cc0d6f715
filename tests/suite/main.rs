//! Whole-suite scenarios.
