//! Whole-suite tests live in `suite/`; this library is empty.
