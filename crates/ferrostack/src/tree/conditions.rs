//! The conditions that `describe cluster --show-conditions` adds to the tree.

use std::str::FromStr;

use serde::Serialize;

use super::Branch;
use crate::snapshot::{Item, Kind, Snapshot};

/// The kinds whose objects are in the tree.
const KINDS: [Kind; 5] = [
    Kind::Cluster,
    Kind::OpenStackCluster,
    Kind::KubeadmControlPlane,
    Kind::MachineDeployment,
    Kind::Machine,
];

/// A condition of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Row {
    #[serde(rename = "type")]
    pub(crate) type_: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    /// When the status changed, RFC 3339.
    pub(crate) since: String,
    pub(crate) message: String,
}

/// One part of the value of --show-conditions: `all`, a kind, or a kind and a name; with `!` only what is not true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selector {
    kind: Option<Kind>,
    name: Option<String>,
    /// Leave out conditions that are true, or false where that is the good state.
    only_untrue: bool,
}

impl FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (plain, only_untrue) = match text.strip_suffix('!') {
            Some(plain) => (plain, true),
            None => (text, false),
        };
        let (kind, name) = match plain.split_once('/') {
            Some((kind, name)) => (kind, Some(name.to_owned())),
            None => (plain, None),
        };
        let known = KINDS
            .into_iter()
            .find(|known| known.as_str().eq_ignore_ascii_case(kind));
        if known.is_none() && (kind != "all" || name.is_some()) {
            let kinds = KINDS.map(Kind::as_str).join(", ");
            return Err(format!(
                "`{text}` is neither `all`, nor a kind, nor KIND/NAME; the kinds are: {kinds}"
            ));
        }
        Ok(Self {
            kind: known,
            name,
            only_untrue,
        })
    }
}

impl Selector {
    /// Whether it can select a Machine, so that machines must not be grouped.
    pub(crate) fn selects_machines(&self) -> bool {
        self.kind.is_none_or(|kind| kind == Kind::Machine)
    }

    fn selects(&self, item: &Item) -> bool {
        self.kind.is_none_or(|kind| kind == item.kind)
            && self.name.as_ref().is_none_or(|name| name == item.name())
    }
}

/// Adds the selected conditions to all branches.
pub(crate) fn add(branch: &mut Branch, snapshot: &Snapshot, namespace: &str, wanted: &[Selector]) {
    let label = branch.name.rsplit(" - ").next().unwrap_or_default();
    let item = snapshot
        .items
        .iter()
        .find(|item| item.namespace() == namespace && item.label() == label);
    if let Some(item) = item {
        branch.conditions = conditions(item, wanted);
    }
    for child in &mut branch.children {
        add(child, snapshot, namespace, wanted);
    }
}

fn conditions(item: &Item, wanted: &[Selector]) -> Vec<Row> {
    let selectors: Vec<&Selector> = wanted.iter().filter(|part| part.selects(item)).collect();
    if selectors.is_empty() {
        return Vec::new();
    }
    let only_untrue = selectors.iter().all(|part| part.only_untrue);
    let all = item.field("/status/conditions").as_array();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    all.into_iter()
        .flatten()
        .map(|condition| Row {
            type_: text(&condition["type"]),
            status: text(&condition["status"]),
            reason: text(&condition["reason"]),
            since: text(&condition["lastTransitionTime"]),
            message: text(&condition["message"]),
        })
        .filter(|row| !only_untrue || row.status != good(&row.type_))
        .collect()
}

/// The status of a condition of this type when nothing is the matter.
pub(crate) fn good(type_: &str) -> &'static str {
    const NEGATIVE: [&str; 7] = [
        "Deleting",
        "Paused",
        "RollingOut",
        "Remediating",
        "ScalingUp",
        "ScalingDown",
        "Updating",
    ];
    if NEGATIVE.contains(&type_) {
        "False"
    } else {
        "True"
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::snapshot::tests::item;

    fn snapshot() -> Snapshot {
        let condition = |type_: &str, status: &str| {
            json!({"type": type_, "status": status, "reason": "R", "message": "m",
                "lastTransitionTime": "2026-11-22T10:00:00Z"})
        };
        let machine = |name: &str| {
            let conditions = [
                condition("Ready", "False"),
                condition("BootstrapConfigReady", "True"),
                condition("Deleting", "False"),
            ];
            item(
                Kind::Machine,
                json!({"metadata": {"name": name, "namespace": "default"}, "status": {"conditions": conditions}}),
            )
        };
        Snapshot {
            items: vec![machine("a"), machine("b")],
        }
    }

    fn types(wanted: &[&str], name: &str) -> Vec<String> {
        let wanted: Vec<Selector> = wanted.iter().map(|part| part.parse().unwrap()).collect();
        let mut branch = Branch {
            name: format!("Machine/{name}"),
            ..Branch::default()
        };
        add(&mut branch, &snapshot(), "default", &wanted);
        branch.conditions.into_iter().map(|row| row.type_).collect()
    }

    #[test]
    fn conditions_are_selected_by_kind_name_and_state() {
        let three = ["Ready", "BootstrapConfigReady", "Deleting"];
        assert_eq!(types(&["all"], "a"), three);
        assert_eq!(types(&["machine"], "a"), three);
        assert_eq!(types(&["Machine/b"], "a"), [""; 0]);
        assert_eq!(types(&["Machine/b"], "b"), three);
        assert_eq!(types(&["all!"], "a"), ["Ready"]);
        assert_eq!(types(&["all!", "Machine/a"], "a"), three);
        assert_eq!(types(&["Cluster"], "a"), [""; 0]);
        for wrong in ["", "!", "Pod", "all/x", "Pod/x!"] {
            let error = wrong.parse::<Selector>().unwrap_err();
            assert!(error.contains("the kinds are: Cluster, "), "{error}");
        }
    }
}
