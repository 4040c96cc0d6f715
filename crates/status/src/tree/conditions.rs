//! Conditions added to the tree by `describe cluster --show-conditions`.

use std::str::FromStr;

use api::conditions::Type;
use serde::Serialize;

use super::Branch;
use crate::snapshot::{Item, Kind, Snapshot};

/// A condition of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Type, such as `Ready`.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Reason in one word.
    pub reason: String,
    /// Time of the last change of the status, RFC 3339.
    pub since: String,
    /// Message for people.
    pub message: String,
}

/// One part of the value of --show-conditions: `all`, a kind, or a kind and a name; with `!`, only conditions in a bad
/// state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// The kind, in lower case; all kinds without one.
    kind: Option<String>,
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
        if kind.is_empty() || (kind == "all" && name.is_some()) || name.as_deref() == Some("") {
            return Err(format!(
                "`{text}` is neither `all`, nor a kind, nor KIND/NAME"
            ));
        }
        Ok(Self {
            kind: (kind != "all").then(|| kind.to_lowercase()),
            name,
            only_untrue,
        })
    }
}

impl Selector {
    /// True if the selector can select a Machine, so that machines must not be grouped.
    pub fn selects_machines(&self) -> bool {
        self.is_of("Machine")
    }

    fn is_of(&self, kind: &str) -> bool {
        let wanted = self.kind.as_ref();
        wanted.is_none_or(|wanted| *wanted == kind.to_lowercase())
    }

    fn selects(&self, item: &Item) -> bool {
        self.is_of(item.kind_name()) && self.name.as_ref().is_none_or(|name| name == item.name())
    }
}

/// Checks that the trees have objects of every selected kind, or may have some later.
///
/// # Errors
/// With the existing kinds.
pub fn check(wanted: &[Selector], roots: &[Branch]) -> Result<(), String> {
    let mut kinds = Vec::new();
    for root in roots {
        kinds_in(root, &mut kinds);
    }
    for part in wanted {
        let later = Kind::ALL.map(Kind::as_str);
        if let Some(kind) = &part.kind
            && !kinds.iter().chain(&later).any(|known| part.is_of(known))
        {
            return Err(format!(
                "--show-conditions: `{kind}` is neither `all`, nor a kind of what is shown, nor KIND/NAME; the kinds are: {}. \
                 More are shown with --echo, --show-machinesets, --show-templates and --show-resourcesets",
                kinds.join(", ")
            ));
        }
    }
    Ok(())
}

fn kinds_in<'a>(branch: &'a Branch, kinds: &mut Vec<&'a str>) {
    let label = branch.name.rsplit(" - ").next().unwrap_or_default();
    let kind = match label.split_once('/') {
        Some((kind, _)) => Some(kind),
        // `3 Machines...`
        None => label.ends_with(" Machines...").then_some("Machine"),
    };
    if let Some(kind) = kind
        && !kinds.contains(&kind)
    {
        kinds.push(kind);
    }
    for child in &branch.children {
        kinds_in(child, kinds);
    }
}

/// Adds the selected conditions to the [`Branch`] and all branches below.
pub fn add(branch: &mut Branch, snapshot: &Snapshot, namespace: &str, wanted: &[Selector]) {
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
    item.conditions()
        .map(|condition| Row {
            type_: condition.type_.to_owned(),
            status: condition.status.to_owned(),
            reason: condition.reason.to_owned(),
            since: condition.since.to_owned(),
            message: condition.message.to_owned(),
        })
        .filter(|row| !only_untrue || row.status != good(&row.type_))
        .collect()
}

/// Status of a condition of this type in a healthy object.
pub fn good(type_: &str) -> &'static str {
    const NEGATIVE: [Type; 7] = [
        Type::Deleting,
        Type::Paused,
        Type::RollingOut,
        Type::Remediating,
        Type::ScalingUp,
        Type::ScalingDown,
        Type::Updating,
    ];
    if NEGATIVE.iter().any(|it| type_ == *it) {
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
        Snapshot::from(vec![machine("a"), machine("b")])
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
    }

    #[test]
    fn a_selector_that_can_select_nothing_is_rejected_with_the_kinds() {
        let named = |name: &str, children: Vec<Branch>| Branch {
            name: name.to_owned(),
            children,
            ..Branch::default()
        };
        let machines = vec![named("3 Machines...", Vec::new())];
        let root = named(
            "Cluster/a",
            vec![
                named("ClusterInfrastructure - DockerCluster/a", Vec::new()),
                named("Workers", machines),
            ],
        );
        let checked = |text: &str| {
            let wanted: Selector = text.parse()?;
            check(&[wanted], std::slice::from_ref(&root))
        };
        for right in [
            "all",
            "all!",
            "cluster",
            "DockerCluster/x",
            "Machine/a!",
            "MachineSet",
        ] {
            assert_eq!(checked(right), Ok(()), "{right}");
        }
        for wrong in ["Pod", "Pod/x!", "Workers"] {
            let error = checked(wrong).unwrap_err();
            assert!(
                error.contains("the kinds are: Cluster, DockerCluster, Machine."),
                "{error}"
            );
        }
        for wrong in ["", "!", "all/x", "/x", "Machine/"] {
            let error = checked(wrong).unwrap_err();
            assert!(error.contains("neither `all`, nor a kind"), "{error}");
        }
    }
}
