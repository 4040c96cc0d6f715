use serde_json::json;

use super::*;

/// Object of a kind; the uid is `KIND/NAME`, as in `owners`.
pub(crate) fn object(kind: &str, name: &str, owners: &[&str], more: Value) -> Object {
    let group = match kind {
        "Secret" | "ConfigMap" => "",
        "ClusterResourceSet" | "ClusterResourceSetBinding" => "addons.cluster.x-k8s.io",
        kind if kind.starts_with("OpenStack") => "infrastructure.cluster.x-k8s.io",
        _ => "cluster.x-k8s.io",
    };
    let kind = Kind {
        group: group.to_owned(),
        name: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
        namespaced: true,
        has_status: !group.is_empty(),
        moves: false,
        hierarchy: false,
        versions: vec!["v1beta2".to_owned()],
        contract: None,
    };
    let owners: Vec<Value> = owners
        .iter()
        .map(|uid| {
            let (kind, name) = uid.split_once('/').unwrap();
            json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "name": name, "uid": uid})
        })
        .collect();
    let mut content = json!({"metadata": {"name": name, "namespace": "default",
        "uid": format!("{}/{name}", kind.name), "ownerReferences": owners}});
    for (field, value) in more.as_object().into_iter().flatten() {
        match field.as_str() {
            "labels" | "annotations" | "deletionTimestamp" | "finalizers" => {
                content["metadata"][field] = value.clone();
            }
            _ => content[field] = value.clone(),
        }
    }
    Object::new(&kind, serde_json::from_value(content).unwrap())
}

fn moved(selection: &Selection) -> Vec<String> {
    selection
        .moves
        .iter()
        .map(|moving| moving.object.label())
        .collect()
}

#[test]
fn a_pool_moves_with_the_cluster_that_uses_it_and_with_all_that_have_an_address_of_it() {
    let reference = |name: &str| json!({"kind": "OpenStackFloatingIPPool", "name": name});
    let of_pool = |name: &str| json!({"spec": {"poolRef": reference(name)}});
    let uses = |name: &str| json!({"spec": {"template": {"spec": {"floatingIPPoolRef": reference(name)}}}});
    let identity = json!({"spec": {"identityRef": {"name": "cloud"}}});
    let selection = select(vec![
        object("Cluster", "c", &[], json!({})),
        object(
            "OpenStackMachineTemplate",
            "t",
            &["Cluster/c"],
            uses("used"),
        ),
        object("OpenStackFloatingIPPool", "used", &[], identity),
        object("OpenStackFloatingIPPool", "other", &[], json!({})),
        object("Secret", "cloud", &[], json!({})),
        object("IPAddressClaim", "of a user", &[], of_pool("used")),
        object(
            "IPAddress",
            "of a user",
            &["IPAddressClaim/of a user"],
            of_pool("used"),
        ),
        object("IPAddressClaim", "of the other", &[], of_pool("other")),
        object(
            "OpenStackServer",
            "alone",
            &[],
            json!({"spec": {"floatingIPPoolRef": reference("used")}}),
        ),
        object("OpenStackServer", "without", &[], json!({"spec": {}})),
    ]);
    assert_eq!(
        moved(&selection),
        [
            "Cluster/c",
            "IPAddressClaim/of a user",
            "OpenStackFloatingIPPool/used",
            "OpenStackServer/alone",
            "Secret/cloud",
            "IPAddress/of a user",
            "OpenStackMachineTemplate/t",
        ]
    );
}

#[test]
fn a_cluster_moves_with_what_it_owns_names_and_needs_owners_first() {
    let identity = json!({"spec": {"template": {"spec": {"identityRef": {"name": "cloud-b"}}}}});
    let selection = select(vec![
        object("Machine", "m", &["MachineSet/s"], json!({})),
        object("Secret", "m-data", &["KubeadmConfig/m"], json!({})),
        object(
            "KubeadmConfig",
            "m",
            &["Machine/m"],
            json!({"spec": {"files": [{"contentFrom": {"secret": {"name": "file", "key": "k"}}}]}}),
        ),
        object("MachineSet", "s", &["MachineDeployment/d"], json!({})),
        object("MachineDeployment", "d", &["Cluster/c"], json!({})),
        object("OpenStackMachineTemplate", "t", &["Cluster/c"], identity),
        object(
            "OpenStackCluster",
            "c",
            &["Cluster/c"],
            json!({"spec": {"identityRef": {"type": "Secret", "name": "cloud-a"}}}),
        ),
        object("Cluster", "c", &[], json!({})),
        object("Secret", "cloud-a", &[], json!({})),
        object("Secret", "cloud-b", &[], json!({})),
        object("Secret", "file", &[], json!({})),
        object("Secret", "c-ca", &[], json!({})),
        object("Secret", "c-caviar", &[], json!({})),
        object("Secret", "other", &[], json!({})),
        object("ConfigMap", "kube-root-ca.crt", &[], json!({})),
        object("ConfigMap", "ferrostack-move", &[], json!({})),
        object("MachineDrainRule", "r", &[], json!({})),
    ]);
    assert_eq!(
        moved(&selection),
        [
            "Cluster/c",
            "MachineDrainRule/r",
            "Secret/c-ca",
            "Secret/cloud-a",
            "Secret/cloud-b",
            "Secret/file",
            "MachineDeployment/d",
            "OpenStackCluster/c",
            "OpenStackMachineTemplate/t",
            "MachineSet/s",
            "Machine/m",
            "KubeadmConfig/m",
            "Secret/m-data",
        ]
    );
    let stays: Vec<_> = selection
        .stays
        .iter()
        .map(|staying| staying.object.label())
        .collect();
    assert_eq!(stays, ["Secret/c-caviar", "Secret/other"]);
    let why = |label: &str| {
        let found = selection
            .moves
            .iter()
            .find(|moving| moving.object.label() == label);
        found.unwrap().why.clone()
    };
    assert_eq!(why("Secret/cloud-a"), "OpenStackCluster/c refers to it");
    assert_eq!(why("Secret/c-ca"), "it belongs to Cluster/c by its name");
    assert_eq!(why("Machine/m"), "MachineSet/s owns it");
}

#[test]
fn sets_and_labelled_objects_move_and_others_stay_with_the_reason() {
    let set = json!({"spec": {"resources": [{"kind": "ConfigMap", "name": "cni"}, {"kind": "Secret", "name": "key"}]}});
    let label = |label: &str| json!({"labels": {label: ""}});
    let selection = select(vec![
        object("ClusterResourceSet", "s", &[], set),
        object(
            "ClusterResourceSetBinding",
            "c",
            &["ClusterResourceSet/s"],
            json!({}),
        ),
        object("ConfigMap", "cni", &[], json!({})),
        object("ConfigMap", "key", &[], json!({})),
        object("Secret", "key", &[], json!({})),
        object("Secret", "labelled", &[], label(MOVE_LABEL)),
        object("ConfigMap", "of-labelled", &["Secret/labelled"], json!({})),
        object("Machine", "orphan", &["MachineSet/gone"], json!({})),
        object("OpenStackMachine", "orphan", &["Machine/orphan"], json!({})),
    ]);
    assert_eq!(
        moved(&selection),
        [
            "ClusterResourceSet/s",
            "ConfigMap/cni",
            "Secret/key",
            "Secret/labelled",
            "ClusterResourceSetBinding/c",
            "ConfigMap/of-labelled"
        ]
    );
    let stays: Vec<_> = selection
        .stays
        .iter()
        .map(|staying| (staying.object.label(), staying.why.as_str()))
        .collect();
    assert_eq!(
        stays[0].1,
        "no cluster refers to it, and it has no label clusterctl.cluster.x-k8s.io/move"
    );
    assert_eq!(
        stays[1].1,
        "its owner MachineSet/gone does not exist in this namespace"
    );
    assert_eq!(stays[2].1, "its owner Machine/orphan does not move");
}

#[test]
fn owners_that_own_each_other_have_an_order_nevertheless() {
    let selection = select(vec![
        object("Cluster", "c", &["MachineSet/s"], json!({})),
        object("MachineSet", "s", &["Cluster/c"], json!({})),
    ]);
    assert_eq!(selection.moves.len(), 2);
}
