//! `/metrics` in the text form of Prometheus.

use std::fmt::Write as _;

use crate::server::Core;

/// What the server counts.
pub(crate) fn text(core: &Core) -> String {
    let mut out = String::new();
    let stats = core.stats();
    for (name, help, value) in [
        (
            "apiserver_storage_objects",
            "Objects stored.",
            stats.objects as u64,
        ),
        (
            "apiserver_storage_object_bytes",
            "Bytes of the JSON of all objects.",
            stats.object_bytes as u64,
        ),
        (
            "apiserver_storage_revision",
            "Revision of the last write.",
            stats.revision,
        ),
        (
            "apiserver_registered_watchers",
            "Watches being served.",
            stats.watches as u64,
        ),
        (
            "apiserver_storage_size_bytes",
            "Bytes of the database file and its log.",
            stats.database_bytes,
        ),
    ] {
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n"
        );
    }
    out
}
