//! Printer columns of built-in kinds (`pkg/printers/internalversion` of Kubernetes).

use super::{Cell, Column};

/// The columns of a built-in kind.
pub(super) fn of(_group: &str, _kind: &str) -> Vec<Column> {
    vec![name(), age()]
}

/// `NAME`, the first column of every kind.
pub(crate) fn name() -> Column {
    Column {
        name: "Name".to_owned(),
        kind: "string".to_owned(),
        format: "name".to_owned(),
        description: "Name must be unique within a namespace.".to_owned(),
        priority: 0,
        cell: Cell::Path(".metadata.name".to_owned()),
    }
}

/// `AGE`, the last column of most kinds.
pub(crate) fn age() -> Column {
    Column {
        name: "Age".to_owned(),
        kind: "date".to_owned(),
        format: String::new(),
        description: "CreationTimestamp is a timestamp representing the server time when this object was created.".to_owned(),
        priority: 0,
        cell: Cell::Path(".metadata.creationTimestamp".to_owned()),
    }
}
