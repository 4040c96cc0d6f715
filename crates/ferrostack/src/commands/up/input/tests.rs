use clap::Parser;

use super::*;
use crate::cli::{Cli, Command};
use crate::tests::item;

fn args(flags: &[&str]) -> Up {
    let all = ["ferrostack", "up"].iter().chain(flags);
    match Cli::try_parse_from(all).unwrap().command {
        Command::Up(up) => *up,
        _ => unreachable!(),
    }
}

/// The cluster `demo` with one control plane machine and two workers, and `more` clusters.
fn stored(more: &[&str]) -> Snapshot {
    let metadata = |name: &str, cluster: &str| json!({"name": name, "namespace": "default", "uid": name, "labels": {"cluster.x-k8s.io/cluster-name": cluster}});
    let mut items = vec![
        item(Kind::Cluster, json!({"metadata": metadata("demo", "demo")})),
        item(
            Kind::KubeadmControlPlane,
            json!({"metadata": metadata("demo-control-plane", "demo"), "spec": {"replicas": 1, "version": "v1.34.2"}}),
        ),
        item(
            Kind::MachineDeployment,
            json!({"metadata": metadata("demo-md-0", "demo"),
                   "spec": {"replicas": 2, "template": {"spec": {"version": "v1.34.2"}}}}),
        ),
    ];
    items.extend(
        more.iter()
            .map(|name| item(Kind::Cluster, json!({"metadata": metadata(name, name)}))),
    );
    Snapshot::from(items)
}

fn decided(flags: &[&str], stored: &Snapshot) -> Result<Decision, String> {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(&dir.path().join("data")).unwrap();
    data.write("templates/default.demo.template", "flavor default")
        .unwrap();
    let (args, environment) = (args(flags), Environment::default());
    let input = futures::executor::block_on(Input::read(&args, &environment))
        .map_err(|error| format!("{error:#}"))?;
    decide(&args, &environment, &input, stored, &data).map_err(|error| format!("{error:#}"))
}

fn changed(flags: &[&str]) -> Vec<(String, String)> {
    match decided(flags, &stored(&[])) {
        Ok(Decision::Change(changes)) => changes
            .into_iter()
            .map(|change| (change.name, change.what))
            .collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cluster_is_created_when_there_is_none_of_that_name() {
    let create = |name: &str| Ok(Decision::Create(name.to_owned()));
    assert_eq!(decided(&[], &Snapshot::default()), create("demo"));
    assert_eq!(decided(&["--cluster-name", "b"], &stored(&[])), create("b"));
    assert_eq!(decided(&["-n", "foo"], &stored(&[])), create("demo"));
    assert_eq!(decided(&[], &stored(&[])), Ok(Decision::Nothing));
    assert_eq!(
        decided(&["--cluster-name", "demo"], &stored(&["b"])),
        Ok(Decision::Nothing)
    );
}

#[test]
fn options_that_the_cluster_has_change_nothing() {
    let flags = [
        "--worker-machine-count=2",
        "--control-plane-machine-count=1",
        "--kubernetes-version=1.34.2",
        "--flavor=default",
    ];
    assert_eq!(decided(&flags, &stored(&[])), Ok(Decision::Nothing));
}

#[test]
fn counts_and_version_of_a_stored_cluster_are_changed() {
    assert_eq!(
        changed(&["--worker-machine-count=4"]),
        [("demo-md-0".to_owned(), "2 to 4 machines".to_owned())]
    );
    assert_eq!(
        changed(&[
            "--control-plane-machine-count=3",
            "--kubernetes-version=v1.35.0"
        ]),
        [
            (
                "demo-control-plane".to_owned(),
                "v1.34.2 to v1.35.0".to_owned()
            ),
            ("demo-md-0".to_owned(), "v1.34.2 to v1.35.0".to_owned()),
            (
                "demo-control-plane".to_owned(),
                "1 to 3 machines".to_owned()
            ),
        ]
    );
}

#[test]
fn what_cannot_be_changed_is_refused_with_the_command_that_does_it() {
    let refused = |flags: &[&str], stored: &Snapshot| decided(flags, stored).unwrap_err();
    let text = refused(&["--flavor=without-lb"], &stored(&[]));
    assert!(text.contains("--flavor: cluster `demo` exists"), "{text}");
    assert!(text.contains("--cluster-name NAME"), "{text}");
    let text = refused(&["--worker-machine-count=4"], &stored(&["b"]));
    assert!(text.contains("several clusters: demo, b"), "{text}");
    let mut two = stored(&[]);
    let mut other = two.items[2].clone();
    std::sync::Arc::make_mut(&mut other.object).metadata.name = Some("demo-md-1".to_owned());
    two.items.push(other);
    let text = refused(&["--worker-machine-count=5"], &two);
    assert!(
        text.contains("-n default scale machinedeployment demo-md-0 --replicas=N"),
        "{text}"
    );
    let text = refused(&["--flavor=clusterclass-dev-test"], &stored(&[]));
    assert!(
        text.contains("no Cluster; --flavor topology has both"),
        "{text}"
    );
    let text = refused(&["--from", "/nowhere"], &stored(&[]));
    assert!(text.contains("cannot read template /nowhere"), "{text}");
}

#[test]
fn options_that_would_be_ignored_are_refused() {
    for flags in [
        &["-f", "a.yaml", "--flavor", "default"][..],
        &["-f", "a.yaml", "--worker-machine-count", "2"],
        &["-f", "a.yaml", "--cluster-name", "x"],
        &["--timeout", "5s"],
        &["--detach", "--exit-when-ready"],
        &["--cloud", "x", "--latency", "real"],
        &["--cloud", "x", "--simulated-listen", "127.0.0.1:0"],
    ] {
        let all = ["ferrostack", "up"].iter().chain(flags);
        assert!(Cli::try_parse_from(all).is_err(), "{flags:?}");
    }
    let alone = ["ferrostack", "delete", "cluster", "x", "--timeout", "5s"];
    assert!(Cli::try_parse_from(alone).is_err());
}
