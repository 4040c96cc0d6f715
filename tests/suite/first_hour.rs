//! What a new user does in the first hour, and what the screen says then.

use std::path::Path;

use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams};
use serde_json::Value;

use crate::main_job::kind;
use crate::process::{Up, client, ferrostack, run, texts};

const SMALL: [&str; 4] = [
    "--control-plane-machine-count",
    "1",
    "--worker-machine-count",
    "1",
];

/// Runs a command that is expected to succeed, on the data directory `home/data`.
async fn done(home: &Path, args: &[&str]) -> String {
    let (code, out, err) = tried(home, args).await;
    assert_eq!(code, Some(0), "{args:?}: {out}{err}");
    out
}

async fn tried(home: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let data = home.join("data").display().to_string();
    let output = ferrostack(home)
        .args(args)
        .env("FERROSTACK_DATA_DIR", &data)
        // Somebody else's, which the data directory comes before.
        .env("KUBECONFIG", home.join("nowhere"))
        .output()
        .await;
    let (out, err) = texts(&output);
    (output.status.code(), out, err)
}

#[tokio::test(flavor = "multi_thread")]
async fn up_in_the_background_is_seen_changed_and_ended() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let out = done(home, &[&["up", "--detach"][..], &SMALL].concat()).await;
    assert!(out.contains("it goes on in the background"), "{out}");
    assert!(!out.contains("\x1b["), "{out}");

    // A second one is refused; the first one is described with commands that work.
    let (code, _, err) = tried(home, &["up", "--detach"]).await;
    assert_eq!(code, Some(1));
    assert!(err.contains("is in use by another ferrostack"), "{err}");
    let way = format!(
        "`ferrostack down --data-dir {}` stops it",
        home.join("data").display()
    );
    assert!(err.contains(&way), "{err}");
    let out = done(home, &["status"]).await;
    assert!(out.contains("everything is ready"), "{out}");
    assert!(
        out.contains(&format!("--data-dir {}", home.join("data").display())),
        "{out}"
    );
    let status: Value = serde_json::from_str(&done(home, &["status", "-o", "json"]).await).unwrap();
    assert_eq!(status["running"], true);
    assert_eq!(status["clusters"][0]["phase"], "Provisioned", "{status:#}");
    assert_eq!(status["clusters"][0]["available"], "True", "{status:#}");
    assert!(status["uptimeSeconds"].is_u64(), "{status:#}");
    for name in ["managementApi", "simulatedOpenStack"] {
        let address = status["addresses"][name].as_str().unwrap();
        assert!(out.contains(address), "{name}: {out}");
    }
    let version = format!("ferrostack {}, API server ", env!("CARGO_PKG_VERSION"));
    assert!(out.contains(&version), "{out}");
    assert!(out.contains("1/1"), "{out}");

    // Clusters are listed, described, and their kubeconfig is merged.
    let out = done(home, &["get", "clusters", "-A"]).await;
    assert!(
        out.contains("demo") && out.contains("1/1") && out.contains("v1.34.2"),
        "{out}"
    );
    for output in ["wide", "yaml", "json"] {
        assert!(
            done(home, &["get", "clusters", "demo", "-o", output])
                .await
                .contains("demo")
        );
    }
    let (_, _, err) = tried(home, &["get", "kubeconfig", "nosuch"]).await;
    assert_eq!(
        err.trim_end(),
        "error: there is no cluster `nosuch` in namespace default; there are: demo"
    );
    let tree: Value =
        serde_json::from_str(&done(home, &["describe", "cluster", "demo", "-o", "json"]).await)
            .unwrap();
    assert_eq!(tree["children"][1]["readyReplicas"], 1, "{tree:#}");
    let planned = done(home, &["plan", "cluster", "demo"]).await;
    assert_eq!(planned, "cluster demo: nothing would be written\n");
    // Conditions are shown where they are asked for; what is as it should be is left out with `!`.
    let describe = ["describe", "cluster", "demo"];
    let out = done(
        home,
        &[&describe[..], &["--show-conditions", "Machine"]].concat(),
    )
    .await;
    let nodes = |out: &str| {
        out.lines()
            .filter(|line| line.contains("NodeReady"))
            .count()
    };
    assert_eq!(nodes(&out), 2, "{out}");
    assert!(!out.contains("ControlPlaneInitialized"), "{out}");
    let out = done(
        home,
        &[&describe[..], &["--show-conditions", "all!"]].concat(),
    )
    .await;
    assert!(
        !out.contains("NodeReady") && !out.contains("NodeHealthy"),
        "{out}"
    );
    let (_, _, err) = tried(
        home,
        &[&describe[..], &["--show-conditions", "Pod"]].concat(),
    )
    .await;
    assert!(
        err.contains("the kinds are: Cluster, OpenStackCluster"),
        "{err}"
    );
    // Webhooks of a manager would stop it.
    let (code, _, err) = tried(home, &["init"]).await;
    assert_eq!(code, Some(1));
    let start = "error: this is the API server of a `ferrostack up`";
    assert!(err.starts_with(start), "{err}");
    // What is left out otherwise is shown when it is asked for.
    let more = [
        "--show-machinesets",
        "--show-templates",
        "--echo",
        "--grouping=false",
    ];
    let out = done(
        home,
        &[&describe[..], &more, &["--color", "always"]].concat(),
    )
    .await;
    for text in [
        "MachineSet/demo-md-0-",
        "MachineInfrastructureTemplate - OpenStackMachineTemplate/demo-md-0",
        "MachineInfrastructure - OpenStackMachine/demo-md-0-",
        "BootstrapConfig - KubeadmConfig/demo-control-plane-",
        "\x1b[32mReady: True\x1b[0m",
    ] {
        assert!(out.contains(text), "{text}\n{out}");
    }
    let out = done(home, &[&describe[..], &["-o", "wide"]].concat()).await;
    assert!(
        out.contains("  NODE  ") && out.contains("  v1.34.2  "),
        "{out}"
    );
    let out = done(home, &[&describe[..], &["-o", "yaml"]].concat()).await;
    assert!(out.starts_with("name: Cluster/demo\n"), "{out}");
    // A template of the management cluster, rendered to a file that nobody else can read.
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: templates}\ndata:\n  template: |\n    \
                    apiVersion: v1\n    kind: Secret\n    metadata: {name: \"${CLUSTER_NAME}-x\"}\n";
    std::fs::write(home.join("map.yaml"), template).unwrap();
    let map = home.join("map.yaml").display().to_string();
    done(home, &["apply", "-f", &map]).await;
    let file = home.join("made.yaml").display().to_string();
    let from = ["generate", "cluster", "x", "--from-config-map", "templates"];
    let out = done(home, &[&from[..], &["--write-to", &file]].concat()).await;
    assert_eq!(out, "");
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.contains("x-x"), "{written}");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let key = ["--from-config-map-key", "other"];
    let (code, _, err) = tried(home, &[&from[..], &key].concat()).await;
    assert_eq!(code, Some(1));
    assert!(
        err.contains("has no key `other`") && err.contains("there are: template"),
        "{err}"
    );
    // The only cluster needs no name; with -A there is one tree for each.
    let out = done(home, &["describe", "cluster"]).await;
    assert!(out.contains("\nCluster/demo "), "{out}");
    let out = done(home, &["describe", "cluster", "-A"]).await;
    assert!(out.contains("\nCluster/demo (-n default) "), "{out}");
    let out = done(home, &["describe", "cluster", "-A", "-o", "json"]).await;
    let trees: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (&trees[0]["name"], &trees[0]["namespace"]),
        (&"Cluster/demo".into(), &"default".into())
    );
    let (_, _, err) = tried(home, &["describe", "cluster", "-n", "empty"]).await;
    assert_eq!(
        err.trim_end(),
        "error: there is no cluster in namespace empty; in other namespaces there are: demo (-n default)"
    );
    let out = done(home, &["get", "clusters", "-n", "empty"]).await;
    assert_eq!(
        out,
        "There is no cluster in namespace empty; -A lists those of all namespaces.\n"
    );
    let (_, _, err) = tried(home, &[&describe[..], &["--context", "nosuch"]].concat()).await;
    assert!(
        err.contains("there is no context `nosuch` in the kubeconfig; there are: ferrostack"),
        "{err}"
    );

    // What another cluster needs is filled in from the cloud of the `up` that runs.
    let (code, out, err) = tried(home, &["generate", "cluster", "two"]).await;
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("name: two-control-plane"), "{out}");
    for text in [
        "filled in from cloud simulated of the `up` that runs on ",
        "OPENSTACK_EXTERNAL_NETWORK_ID=",
        "  KUBERNETES_VERSION=v1.34.2  (as `up` sets it)",
        " generate cluster two --data-dir ",
    ] {
        assert!(err.contains(text), "{text}\n{err}");
    }
    let merge = ferrostack(home)
        .args(["get", "kubeconfig", "--merge", "--data-dir"])
        .arg(home.join("data"))
        .output()
        .await;
    assert!(merge.status.success(), "{:?}", texts(&merge));
    client(&home.join(".kube/config"))
        .await
        .apiserver_version()
        .await
        .unwrap();
    assert!(done(home, &["version"]).await.contains("API server v1."));

    // What is applied is checked as a whole first.
    let manifests = home.join("manifests");
    std::fs::create_dir(&manifests).unwrap();
    for name in ["a", "b"] {
        let text = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
        std::fs::write(manifests.join(format!("{name}.yaml")), text).unwrap();
    }
    let out = done(home, &["apply", "-f", manifests.to_str().unwrap()]).await;
    assert_eq!(out.trim_end(), "2 ConfigMaps applied");

    // Deleting says what stays; the machine template does not.
    let out = done(home, &["delete", "cluster", "demo", "--wait"]).await;
    assert!(
        out.contains("Secret demo-cloud-config with the credentials of the cloud stays"),
        "{out}"
    );
    let api = client(&home.join("data/kubeconfig")).await;
    let templates: Api<DynamicObject> = Api::all_with(
        api,
        &kind(
            "infrastructure.cluster.x-k8s.io",
            "OpenStackMachineTemplate",
        ),
    );
    let (_, _, err) = tried(home, &["describe", "cluster"]).await;
    assert_eq!(
        err.trim_end(),
        "error: there is no cluster in any namespace"
    );
    let out = done(home, &["get", "clusters", "-A"]).await;
    assert_eq!(out, "There is no cluster in any namespace.\n");
    crate::process::eventually("the templates are gone", || async {
        let left = templates.list(&ListParams::default()).await.ok()?.items;
        left.is_empty().then_some(())
    })
    .await;

    let out = done(home, &["down"]).await;
    assert!(out.starts_with("stopped; "), "{out}");
    let out = done(home, &["down"]).await;
    assert!(out.contains("does not run"), "{out}");
    let (code, out, _) = tried(home, &["status"]).await;
    assert_eq!(code, Some(3), "{out}");
    assert!(out.contains("does not run on"), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_up_applies_what_it_is_asked_for() {
    let home = tempfile::tempdir().unwrap();
    let args = [&SMALL[..], &["-n", "foo", "--exit-when-ready"]].concat();
    let mut up = Up::start(home.path(), &args, &[]);
    up.ready().await;
    assert_eq!(up.ended().await, Some(0), "{}", up.story());

    // Two workers instead of one, in the namespace that the first one created.
    let mut up = Up::start(home.path(), &["--worker-machine-count", "2"], &[]);
    up.ready().await;
    let deployments: Api<DynamicObject> = Api::namespaced_with(
        up.client().await,
        "foo",
        &kind("cluster.x-k8s.io", "MachineDeployment"),
    );
    let deployment = deployments.get("demo-md-0").await.unwrap();
    assert_eq!(
        deployment.data["spec"]["replicas"],
        2,
        "{}",
        deployment.name_any()
    );
    assert!(
        up.story()
            .contains("MachineDeployment/demo-md-0 is changed from 1 to 2 machines"),
        "{}",
        up.story()
    );
    up.stop().await;

    // Another template, another cloud: refused with the way to it.
    for (args, expected) in [
        (
            &["--flavor", "without-lb"][..],
            "a template is used only when a cluster is created",
        ),
        (
            &["--cloud", "real"],
            "was used with a simulated OpenStack, not with cloud `real`",
        ),
        (
            &["--simulated-listen", "127.0.0.1:1"],
            "which its clusters use",
        ),
    ] {
        let mut up = Up::start(home.path(), args, &[]);
        assert_eq!(up.ended().await, Some(1), "{}", up.story());
        assert!(up.story().contains(expected), "{expected}\n{}", up.story());
    }
    let mode = |name: &str| {
        use std::os::unix::fs::PermissionsExt;
        let metadata = std::fs::metadata(home.path().join("data").join(name)).unwrap();
        metadata.permissions().mode() & 0o777
    };
    assert_eq!((mode("cloud.db"), mode("management.db")), (0o600, 0o600));
}

#[tokio::test(flavor = "multi_thread")]
async fn shells_complete_commands() {
    let home = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let (out, err) = texts(&run(home.path(), &["completion", shell]).await);
        assert!(
            out.contains("FERROSTACK_COMPLETE") && err.is_empty(),
            "{shell}: {err}"
        );
    }
}
