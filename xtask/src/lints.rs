//! Compilation by clippy, as in `.ci/run`, so that each crate is compiled once for check and tests.

/// Variables that make cargo compile the crates of the workspace with clippy, warnings denied.
pub(crate) const VARIABLES: [(&str, &str); 2] = [
    ("RUSTC_WORKSPACE_WRAPPER", "clippy-driver"),
    (
        "CLIPPY_ARGS",
        "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__",
    ),
];
