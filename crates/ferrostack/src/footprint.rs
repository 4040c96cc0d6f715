//! Memory of a serving program.

/// Unmaps the part of the program's file read at the start. A failure is logged.
pub(crate) fn without_start() {
    #[cfg(target_os = "linux")]
    match heap::code::release() {
        Ok(bytes) => tracing::debug!("{bytes} bytes of code and constants are unmapped"),
        Err(error) => tracing::debug!("code and constants of the start stay mapped: {error}"),
    }
}
