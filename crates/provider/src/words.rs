//! Steps and ports in words, for conditions and events.

use openstack::network::Port;

/// Turns "create the network" into "Created the network".
pub(crate) fn past(step: &str) -> String {
    let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
    let verb = match verb {
        "set" => "Set".to_owned(),
        verb if verb.ends_with('e') => format!("{}d", capital(verb)),
        verb if verb.ends_with('g') => format!("{}ged", capital(verb)),
        verb => format!("{}ed", capital(verb)),
    };
    format!("{verb} {rest}")
}

/// Turns "create the network" into "creating the network".
pub(crate) fn doing(step: &str) -> String {
    let (verb, rest) = step.split_once(' ').unwrap_or((step, ""));
    let verb = match verb {
        "set" => "setting".to_owned(),
        "tag" => "tagging".to_owned(),
        verb => format!("{}ing", verb.trim_end_matches('e')),
    };
    format!("{verb} {rest}")
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// [`Port`] with its device.
pub(crate) fn port(id: &str, port: Option<&Port>) -> String {
    match port {
        Some(port) if port.device_owner.starts_with("compute:") => {
            format!("port {id} of server {}", port.device_id)
        }
        Some(port) if !port.device_owner.is_empty() => {
            format!("port {id} of {}", port.device_owner)
        }
        _ => format!("port {id}"),
    }
}
