//! Files with the memory of this process: of one that has tokens of others there are none.

/// Keeps memory and environment of this process out of core dumps, and from other processes of its user. Where that is not
/// possible, it is logged.
pub(crate) fn forbid() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};

        if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
            tracing::warn!("a core dump of this process would have tokens: {error}");
        }
    }
}
