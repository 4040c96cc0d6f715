//! Completeness of the list of missing features: every message that rejects or reports something as not built belongs
//! to an entry.

use crate::syntax::Source;

/// Phrases of messages about a missing feature.
const MARKS: [&str; 4] = [
    "not built",
    "not supported",
    "not implemented",
    "not served by ferrostack",
];

/// Path of the list, below the root.
pub(super) const LIST: &str = "docs/reference/not-built.md";

/// Pairs: words in messages, and words of the entry in the list.
const ENTRIES: [(&str, &str); 20] = [
    ("Nfs is not built yet", "drivers `Lvm`, `Iscsi` and `Nfs`"),
    (
        "no Pod of the cloud mounts file systems",
        "drivers `Lvm`, `Iscsi` and `Nfs`",
    ),
    ("MachinePools are not built", "classes of MachinePools"),
    (
        "MachinePools of a topology are not built",
        "classes of MachinePools",
    ),
    ("runtime extensions are not built", "runtime extensions"),
    (
        "gates of a ClusterClass are not built",
        "`availabilityGates` of a class",
    ),
    (
        "rules about changes of variables (oldSelf) are not built",
        "rules with `oldSelf`",
    ),
    (
        "logging in with one is not built",
        "tokens and client certificates",
    ),
    (
        "client certificates are not built",
        "tokens and client certificates",
    ),
    (
        "this field is not built",
        "fields that are not built are rejected by name",
    ),
    (
        "auth_type `{other}` is not supported",
        "an error names `auth_type`",
    ),
    (
        "is not built: the names of templates depend on their content",
        "builtin variables with the names of templates",
    ),
    (
        "a machine with an address of a pool is not built",
        "machines and bastions with an address of a pool",
    ),
    (
        "a bastion with an address of a pool is not built",
        "machines and bastions with an address of a pool",
    ),
    (
        "with other credentials than its cluster is not built",
        "or machines with other credentials than their cluster",
    ),
    (
        "\"is not built yet\"",
        "fields that are not built are rejected by name",
    ),
    (
        "no way leads from {self} to {to}",
        "other ways than 2025.1 to 2026.1",
    ),
    (
        "Gateway and LoadBalancer are not built",
        "fields that are not built are rejected by name",
    ),
    (
        "{mode} is not built",
        "fields that are not built are rejected by name",
    ),
    (
        "Libvirt is not built",
        "fields that are not built are rejected by name",
    ),
];

/// Sources with messages of the originals, or without users as readers.
const ELSEWHERE: [&str; 5] = [
    "crates/apimachinery/",
    "crates/apiserver/",
    "crates/simulator/",
    "crates/testbed/",
    "xtask/",
];

/// Messages of a [`Source`] without an entry.
pub(super) fn without_entry(source: &Source) -> Vec<String> {
    let name = &source.name;
    if source.module.is_none() || source.is_test() || is_elsewhere(name) {
        return Vec::new();
    }
    let lines = source.text.lines().enumerate();
    lines
        .filter(|(index, _)| !source.is_test_line(index + 1))
        .filter(|(_, line)| is_message(line))
        .filter(|(_, line)| !ENTRIES.iter().any(|(message, _)| line.contains(message)))
        .map(|(index, line)| {
            format!(
                "{name}:{}: no entry of docs/reference/not-built.md is for this message (xtask/src/tidy/not_built.rs): {}",
                index + 1,
                line.trim()
            )
        })
        .collect()
}

/// Entries missing in the list.
pub(super) fn not_listed(list: &str) -> Vec<String> {
    ENTRIES
        .iter()
        .filter(|(_, entry)| !list.contains(entry))
        .map(|(message, entry)| format!("{LIST} lacks {entry}, which a message reports: {message}"))
        .collect()
}

fn is_message(line: &str) -> bool {
    let code = line.trim_start();
    // Continuation lines of a message have no quotes.
    !code.starts_with("//") && MARKS.iter().any(|mark| code.contains(mark))
}

fn is_elsewhere(name: &str) -> bool {
    ELSEWHERE.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_without_an_entry_is_found() {
        let known = "    let text = \"runtime extensions are not built: without one\";";
        let new = "    let text = \"trailers are not built\";";
        let tests = "#[cfg(test)]\nmod tests;";
        let text = format!("{tests}\nfn f() {{\n{known}\n{new}\n// comets are not built\n}}\n");
        let found = without_entry(&Source::new("crates/provider/src/machine.rs", text.clone()));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(":5:"), "{found:?}");
        let tests = Source::new("crates/provider/src/machine/tests.rs", text);
        assert!(without_entry(&tests).is_empty());
    }

    #[test]
    fn an_entry_that_the_list_lacks_is_found() {
        let all: Vec<&str> = ENTRIES.iter().map(|(_, entry)| *entry).collect();
        assert!(not_listed(&all.join("\n")).is_empty());
        // Several messages may have one entry.
        let others: Vec<&str> = all.iter().copied().filter(|it| *it != all[0]).collect();
        assert!(!not_listed(&others.join("\n")).is_empty());
    }
}
