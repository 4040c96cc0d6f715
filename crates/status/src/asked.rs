//! Object of a command, such as `why`, as given by the user.

use crate::snapshot::{Item, Kind, Snapshot};

/// Error: the words name no object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an object: write KIND/NAME, KIND NAME, or the name of a Cluster")]
pub struct NotAnObjectError(String);

/// Object of a command, as given by the user.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked {
    /// The only Cluster of the namespace.
    OnlyCluster,
    /// The Machine of a Node.
    Node(String),
    /// Object by kind, as kubectl knows kinds, and name.
    Object {
        /// Kind in lower case, perhaps with its group.
        kind: String,
        /// Name.
        name: String,
    },
}

impl Asked {
    /// `kind/name`, as given by the user.
    pub fn label(&self) -> String {
        match self {
            Self::OnlyCluster => "cluster".to_owned(),
            Self::Node(name) => format!("node/{name}"),
            Self::Object { kind, name } => format!("{kind}/{name}"),
        }
    }

    /// Name of the Cluster, if one is meant.
    pub fn cluster(&self) -> Option<&str> {
        match self {
            Self::Object { kind, name } if is_name(Kind::Cluster, "Cluster", kind) => Some(name),
            Self::OnlyCluster | Self::Node(_) | Self::Object { .. } => None,
        }
    }

    /// True for a [`Kind`] named here, even if no object has the name.
    pub fn is_known(&self) -> bool {
        match self {
            Self::OnlyCluster | Self::Node(_) => true,
            Self::Object { kind, .. } => Kind::ALL
                .iter()
                .any(|known| is_name(*known, known.as_str(), kind)),
        }
    }

    /// True if `kind` and `name` are of this object; without a name, any object of the kind.
    pub fn means(&self, kind: &str, name: &str) -> bool {
        match self {
            Self::OnlyCluster => true,
            Self::Node(node) => kind == "Node" && name == node,
            Self::Object {
                kind: word,
                name: wanted,
            } => name == wanted && is_name(Kind::of_name(kind), kind, word),
        }
    }
}

/// Reads `KIND/NAME`, `KIND NAME`, or the name of a Cluster.
///
/// # Errors
/// If the words have another form.
pub fn parse(words: &[String]) -> Result<Asked, NotAnObjectError> {
    let (kind, name) = match words {
        [] => return Ok(Asked::OnlyCluster),
        [one] => one.split_once('/').unwrap_or(("cluster", one)),
        [kind, name, ..] => (kind.as_str(), name.as_str()),
    };
    if kind.is_empty() || name.is_empty() || name.contains('/') || words.len() > 2 {
        return Err(NotAnObjectError(words.join(" ")));
    }
    let kind = kind.to_ascii_lowercase();
    if ["node", "nodes", "no"].contains(&kind.as_str()) {
        return Ok(Asked::Node(name.to_owned()));
    }
    Ok(Asked::Object {
        kind,
        name: name.to_owned(),
    })
}

/// True if `word` is a name of the kind of the [`Item`]: `machineset`, `machinesets`, `machinesets.cluster.x-k8s.io`,
/// `ms`.
fn names(item: &Item, word: &str) -> bool {
    let (_, group) = word.split_once('.').unwrap_or((word, ""));
    let api_version = item.object.types.as_ref().map(|it| it.api_version.as_str());
    let of_group = api_version.unwrap_or_default().split('/').next() == Some(group);
    (group.is_empty() || of_group) && is_name(item.kind, item.kind_name(), word)
}

/// True if `word`, without its group, is a name of the [`Kind`].
fn is_name(kind: Kind, name: &str, word: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let plain = word.split_once('.').map_or(word, |(plain, _)| plain);
    let short = match kind {
        Kind::Cluster => "cl",
        Kind::MachineDeployment => "md",
        Kind::MachineSet => "ms",
        Kind::Machine => "ma",
        Kind::KubeadmControlPlane => "kcp",
        Kind::OpenStackCluster | Kind::OpenStackMachine | Kind::Other => "",
    };
    plain == name
        || plain == format!("{name}s")
        || plain == format!("{name}es")
        || (!short.is_empty() && plain == short)
}

/// [`Item`] in `namespace`, the only one of the [`Snapshot`], or an error with its cause.
pub fn find<'a>(
    snapshot: &'a Snapshot,
    asked: &Asked,
    namespace: &str,
) -> Result<&'a Item, String> {
    let here = format!("in namespace {namespace}");
    match asked {
        Asked::OnlyCluster => {
            let clusters: Vec<&Item> = snapshot.of_kind(Kind::Cluster).collect();
            match clusters.as_slice() {
                [one] => Ok(one),
                [] => Err(format!("there is no Cluster {here}")),
                several => Err(format!(
                    "name an object; {here} there are the Clusters {}",
                    listed(several)
                )),
            }
        }
        Asked::Node(name) => {
            let mut machines = snapshot.of_kind(Kind::Machine);
            let of_node =
                |machine: &&Item| machine.field("/status/nodeRef/name").as_str() == Some(name);
            let found = machines.find(of_node);
            found.ok_or_else(|| format!("there is no Machine {here} with the Node {name}"))
        }
        Asked::Object { kind, name } => {
            let of_kind: Vec<&Item> = snapshot
                .items
                .iter()
                .filter(|item| names(item, kind))
                .collect();
            if let Some(found) = of_kind.iter().find(|item| item.name() == name) {
                return Ok(found);
            }
            if let Some(other) = snapshot.items.iter().find(|item| item.name() == name) {
                return Err(format!(
                    "there is no {kind}/{name} {here}; there is {}",
                    other.label()
                ));
            }
            Err(match of_kind.first() {
                Some(first) => format!(
                    "there is no {}/{name} {here}; there are: {}",
                    first.kind_name(),
                    listed(&of_kind)
                ),
                None => format!("there is no {kind}/{name} {here}; {}", kinds(snapshot)),
            })
        }
    }
}

fn listed(items: &[&Item]) -> String {
    let names: Vec<&str> = items.iter().map(|item| item.name()).collect();
    names.join(", ")
}

/// Kinds with objects in the [`Snapshot`].
fn kinds(snapshot: &Snapshot) -> String {
    let mut kinds: Vec<&str> = Vec::new();
    for item in &snapshot.items {
        if !kinds.contains(&item.kind_name()) {
            kinds.push(item.kind_name());
        }
    }
    match kinds.is_empty() {
        true => "there are no objects of Cluster API".to_owned(),
        false => format!("there are objects of the kinds {}", kinds.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::snapshot::tests::item;

    fn snapshot() -> Snapshot {
        let named = |kind: Kind, name: &str| {
            item(
                kind,
                json!({"metadata": {"name": name, "namespace": "default"}, "status": {"nodeRef": {"name": "n"}}}),
            )
        };
        Snapshot::from(vec![
            named(Kind::Cluster, "demo"),
            named(Kind::MachineSet, "a"),
            named(Kind::Machine, "b"),
        ])
    }

    fn found(words: &[&str]) -> Result<String, String> {
        let words: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
        let asked = parse(&words).map_err(|problem| problem.to_string())?;
        find(&snapshot(), &asked, "default").map(Item::label)
    }

    #[test]
    fn objects_are_named_as_kubectl_names_them() {
        for (words, expected) in [
            (&[][..], "Cluster/demo"),
            (&["demo"], "Cluster/demo"),
            (&["Cluster/demo"], "Cluster/demo"),
            (&["machineset", "a"], "MachineSet/a"),
            (&["ms/a"], "MachineSet/a"),
            (&["machinesets.cluster.x-k8s.io/a"], "MachineSet/a"),
            (&["Machines/b"], "Machine/b"),
            (&["node/n"], "Machine/b"),
        ] {
            assert_eq!(found(words).unwrap(), expected, "{words:?}");
        }
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        for (words, expected) in [
            (
                &["Machine/x"][..],
                "there is no Machine/x in namespace default; there are: b",
            ),
            (
                &["pod/x"],
                "there is no pod/x in namespace default; there are objects of the kinds Cluster, MachineSet, Machine",
            ),
            (
                &["machine.example.org/b"],
                "there is no machine.example.org/b in namespace default; there is Machine/b",
            ),
            (
                &["b"],
                "there is no cluster/b in namespace default; there is Machine/b",
            ),
            (
                &["node/x"],
                "there is no Machine in namespace default with the Node x",
            ),
        ] {
            assert_eq!(found(words).unwrap_err(), expected, "{words:?}");
        }
        for words in [&["/x"][..], &["machine/"], &["a/b/c"], &["a", "b", "c"]] {
            let error = found(words).unwrap_err();
            assert!(error.contains("write KIND/NAME"), "{error}");
        }
        let nothing = Snapshot::default();
        let none = find(&nothing, &Asked::OnlyCluster, "default");
        assert_eq!(
            none.unwrap_err(),
            "there is no Cluster in namespace default"
        );
    }
}
