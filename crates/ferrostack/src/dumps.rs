//! Core dumps of this process: there are none, since the memory has tokens of others.

/// Keeps memory and environment of this process out of core dumps, and from other processes of the user. A failure is
/// logged.
pub(crate) fn forbid() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};

        if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
            tracing::warn!("a core dump of this process would have tokens: {error}");
        }
    }
}
