//! What compiles the crates: clippy, as in `.ci/run`, so that nothing is both checked and compiled.

/// The variables by which cargo compiles the crates of the workspace with clippy, warnings denied.
pub(crate) const VARIABLES: [(&str, &str); 2] = [
    ("RUSTC_WORKSPACE_WRAPPER", "clippy-driver"),
    (
        "CLIPPY_ARGS",
        "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__",
    ),
];
