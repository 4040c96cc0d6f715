//! Names of servers and nodes, as created by Nova and kubelets (pure).
//!
//! A kubelet takes the host name of its guest, in lower case: the name that Nova gave to the guest, derived from the
//! name of the server, or chosen at the creation. Guests add a domain, or leave it out.

use std::collections::BTreeMap;
use std::sync::Arc;

use openstack::View;
use openstack::compute::Server;

#[cfg(test)]
mod tests;

/// Maximum length of a host name.
const LONGEST: usize = 63;

/// Host names by the id of the server, for users without host names in the list of servers.
pub(crate) type HostNames = BTreeMap<String, String>;

/// Match between the name of a server and a Node, the best one first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    Same,
    /// Host name in Nova, or derived by Nova, or the same name apart from capital letters.
    Host,
    /// One name has a domain, and the other one has none.
    Short,
}

/// [`Server`]s with the best match for the name of a Node; the user has to resolve several matches.
pub(crate) fn servers(node: &str, view: &View, hosts: &HostNames) -> Vec<Arc<Server>> {
    let same = view.servers.named(node);
    if !same.is_empty() {
        return same.to_vec();
    }
    let fitting = view.servers.iter().filter_map(|server| {
        let host = hosts.get(&server.id).unwrap_or(&server.hostname);
        Some((fit(node, &server.name, host)?, server))
    });
    let fitting: Vec<_> = fitting.collect();
    let best = fitting.iter().map(|(fit, _)| *fit).min();
    let best = fitting.iter().filter(|(fit, _)| Some(*fit) == best);
    best.map(|(_, server)| Arc::clone(server)).collect()
}

/// Match of a Node with the name of a server, or with its host name, empty if unknown.
pub(crate) fn fit(node: &str, name: &str, host: &str) -> Option<Fit> {
    if node == name {
        return Some(Fit::Same);
    }
    let hosts = [host_name(name, '-'), host_name(name, '.')];
    let names = [name, host, &hosts[0], &hosts[1]];
    let mut known = names.into_iter().filter(|name| !name.is_empty());
    if known.clone().any(|name| node.eq_ignore_ascii_case(name)) {
        return Some(Fit::Host);
    }
    known
        .any(|name| is_short_of(node, name) || is_short_of(name, node))
        .then_some(Fit::Short)
}

/// Name without a domain: nodes and servers without a common one are unrelated.
pub(crate) fn beginning(name: &str) -> String {
    let (first, _) = name.split_once('.').unwrap_or((name, ""));
    first.to_ascii_lowercase()
}

/// First parts of the names of nodes that may match the name of a server.
pub(crate) fn beginnings(server: &str) -> [String; 3] {
    [
        beginning(server),
        beginning(&host_name(server, '-')),
        beginning(&host_name(server, '.')),
    ]
}

/// True if a name without a domain is the first part of a name with a domain.
fn is_short_of(short: &str, long: &str) -> bool {
    let first = long.split_once('.').map(|(first, _)| first);
    first.is_some_and(|first| first.eq_ignore_ascii_case(short))
}

/// Host name that Nova derives from the name of a server. Newer releases also turn a `dot` into a hyphen.
fn host_name(name: &str, dot: char) -> String {
    let kept = name.chars().filter_map(|c| match c {
        '.' => Some(dot),
        ' ' | '_' => Some('-'),
        '-' => Some(c),
        c => c.is_ascii_alphanumeric().then(|| c.to_ascii_lowercase()),
    });
    let kept: String = kept.collect();
    let trimmed = kept.trim_matches(['-', '.']);
    trimmed.chars().take(LONGEST).collect()
}
