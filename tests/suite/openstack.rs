//! `ferrostack openstack`: a simulated cloud as its users see it.

use std::path::Path;

use serde_json::Value;

use crate::process::{eventually, ferrostack, run, texts};

/// The arguments of a command on a directory in `home`.
fn on<'a>(data: &'a str, command: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["openstack"];
    args.extend_from_slice(command);
    args.extend(["--data-dir", data]);
    args
}

async fn ended(home: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = run(home, args).await;
    let (out, err) = texts(&output);
    (output.status.code(), out, err)
}

#[tokio::test]
async fn a_simulated_cloud_is_made_shown_changed_and_deleted() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("cluster");
    let data = path.to_str().unwrap();
    let (code, out, err) = ended(home.path(), &on(data, &["up", "--exit-when-ready"])).await;
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(
        out.starts_with("simulated: nothing is started on this machine."),
        "{out}"
    );
    assert!(
        out.contains("--kubeconfig") && out.contains("the cloud is new"),
        "{out}"
    );
    assert!(
        out.contains("nova-scheduler ") && out.contains("\nready after "),
        "{out}"
    );

    let (code, out, _) = ended(home.path(), &on(data, &["up", "--exit-when-ready"])).await;
    assert_eq!(code, Some(0), "{out}");
    assert!(
        out.contains("no parameters are given, and none are changed"),
        "{out}"
    );

    let set = [
        "up",
        "--exit-when-ready",
        "--set",
        "services.nova.config.scheduler.workers=3",
    ];
    let (code, _, err) = ended(home.path(), &on(data, &set)).await;
    assert_eq!(code, Some(1));
    assert!(err.contains("Name its file with -f"), "{err}");
    let file = home.path().join("cloud.yaml");
    std::fs::write(&file, "release: \"2026.1\"\n").unwrap();
    let file = file.to_str().unwrap();
    let args = [&set[..], &["-f", file, "-o", "json"]].concat();
    let (code, out, err) = ended(home.path(), &on(data, &args)).await;
    assert_eq!(code, Some(0), "{out}{err}");
    let lines: Vec<Value> = out
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    let ready = &lines.last().unwrap()["ready"];
    assert!(ready["seconds"].is_number(), "{out}");
    let count = |which: &str| ready["requests"][which].as_u64().unwrap();
    assert!(
        0 < count("writes") && count("writes") < count("all"),
        "{out}"
    );

    let text = "release: \"2026.1\"\nservices: {nova: {config: {scheduler: {workers: 3}}}}\n";
    std::fs::write(file, text).unwrap();
    let again = ["up", "-f", file, "--exit-when-ready", "-o", "json"];
    let (_, out, _) = ended(home.path(), &on(data, &again)).await;
    let unchanged = "the parameters are as before; nothing is written";
    assert!(
        out.contains(unchanged) && out.contains("\"writes\":0"),
        "{out}"
    );

    let (code, _, err) = ended(home.path(), &on(data, &["status"])).await;
    assert_eq!(code, Some(1));
    assert!(
        err.contains("no simulated cloud is running") && err.contains("openstack up"),
        "{err}"
    );

    let mut up = ferrostack(home.path()).args(on(data, &["up"])).start();
    let status = on(data, &["status"]);
    let mut seen = String::new();
    for _ in 0..600 {
        let (_, out, err) = ended(home.path(), &status).await;
        seen = out + &err;
        if seen.starts_with("cloud cloud, release 2026.1: ready\n") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    assert!(
        seen.starts_with("cloud cloud, release 2026.1: ready\n"),
        "{seen}"
    );
    for step in ["broker-accounts", "identities"] {
        let mut lines = seen.lines().map(str::trim);
        let is_ready = |line: &str| line.starts_with(step) && line.contains(" ready");
        assert!(lines.any(is_ready), "{step}: {seen}");
    }
    let plan = on(data, &["plan", "-f", file]);
    let (code, out, err) = ended(home.path(), &plan).await;
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.ends_with("Nothing to do.\n"), "{out}");
    let (code, out, err) = ended(home.path(), &on(data, &["why"])).await;
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "the cloud is ready\n"),
        "{err}"
    );
    let (code, _, err) = ended(home.path(), &on(data, &["why", "nova-ap"])).await;
    assert_eq!(code, Some(1));
    assert!(err.contains("did you mean nova-api?"), "{err}");
    the_apis_answer(home.path(), &path).await;
    what_was_looked_at_is_applied(home.path(), data, file).await;
    // With an `up` that runs the controller, and then without.
    let (code, out, err) = ended(home.path(), &on(data, &["delete"])).await;
    assert_eq!(code, Some(0), "{err}");
    assert!(
        out.contains("deleted; volumes, passwords and keys stay"),
        "{out}"
    );
    // The cloud is gone, and the directory is still one of this command.
    let (code, out, err) = ended(home.path(), &["status", "--data-dir", data]).await;
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("`openstack up` runs (process "), "{out}");
    let (code, out, err) = ended(home.path(), &["down", "--data-dir", data]).await;
    assert_eq!(code, Some(0), "{err}");
    let resume = format!("stopped; the cloud stays in {data}. Go on with: ");
    assert!(out.starts_with(&resume), "{out}");
    assert!(
        out.ends_with(&format!(" openstack up --data-dir {data}\n")),
        "{out}"
    );
    up.child.wait().await.unwrap();
    assert!(!path.join("openstack/clouds.yaml").exists());

    let (code, out, err) = ended(home.path(), &on(data, &["up", "--exit-when-ready"])).await;
    assert_eq!(code, Some(0), "{out}{err}");
    let (code, out, err) = ended(home.path(), &on(data, &["delete", "--purge-data"])).await;
    assert_eq!(code, Some(0), "{err}");
    assert!(out.ends_with("deleted, with its data\n"), "{out}");
    let (code, _, err) = ended(home.path(), &on(data, &["delete"])).await;
    assert_eq!(code, Some(1));
    assert!(
        err.contains("there is no cloud cloud in namespace openstack"),
        "{err}"
    );
    the_data_of_a_cloud_that_was_deleted_before_is_purged(home.path(), data).await;
}

async fn the_data_of_a_cloud_that_was_deleted_before_is_purged(home: &Path, data: &str) {
    let (code, out, err) = ended(home, &on(data, &["up", "--exit-when-ready"])).await;
    assert_eq!(code, Some(0), "{out}{err}");
    let (code, _, err) = ended(home, &on(data, &["delete"])).await;
    assert_eq!(code, Some(0), "{err}");
    let (code, out, err) = ended(home, &on(data, &["delete", "--purge-data"])).await;
    assert_eq!(code, Some(0), "{err}");
    let start = "the cloud cloud was deleted before; its data is deleted now: ";
    assert!(
        out.starts_with(start) && out.contains("PersistentVolumeClaim") && out.contains("Secret"),
        "{out}"
    );
    assert!(!Path::new(data).join("openstack").exists());
    let (code, _, err) = ended(home, &on(data, &["delete", "--purge-data"])).await;
    assert_eq!(code, Some(1));
    assert!(err.contains("and no data of one"), "{err}");
}

/// Our own client logs in with the clouds.yaml that `up` has written, and finds each service by the catalogue.
async fn the_apis_answer(home: &Path, path: &Path) {
    let data = path.to_str().unwrap();
    let (code, text, err) = ended(home, &on(data, &["clouds-yaml"])).await;
    assert_eq!(code, Some(0), "{err}");
    let file = path.join("openstack/clouds.yaml");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    let mode = std::fs::metadata(&file).unwrap().permissions();
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777,
        0o600
    );
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = openstack::CloudConfig::parse(&text, "cloud").unwrap();
    let options = openstack::SessionOptions::default();
    let session = openstack::Session::connect(config, &options).await.unwrap();
    let projects = session.identity().projects().await.unwrap();
    assert!(projects.iter().any(|it| it.name == "admin"));
    let create = openstack::network::NetworkCreate {
        name: "net".to_owned(),
        ..Default::default()
    };
    session.network().create_network(&create).await.unwrap();
    let networks = session.network().networks(Default::default()).await;
    assert_eq!(networks.unwrap().len(), 1);
    let images = session.image().list(&Default::default()).await;
    assert_eq!(images.unwrap().len(), 0);
    let servers = session.compute().servers(&Default::default()).await;
    assert_eq!(servers.unwrap().len(), 0);
}

/// A plan is applied by its digest, and not after something has changed.
async fn what_was_looked_at_is_applied(home: &Path, data: &str, file: &str) {
    let text = "release: \"2026.1\"\nservices: {nova: {config: {scheduler: {workers: 4}}}}\n";
    std::fs::write(file, text).unwrap();
    let (code, out, err) = ended(home, &on(data, &["plan", "-f", file, "-o", "json"])).await;
    assert_eq!(code, Some(2), "{out}{err}");
    let plan: Value = serde_json::from_str(&out).unwrap();
    let digest = plan["digest"].as_str().unwrap();
    let other = on(data, &["apply", "-f", file, "--plan", "0123456789abcdef"]);
    let (code, _, err) = ended(home, &other).await;
    assert_eq!(code, Some(1));
    let parts = ["nothing is written", digest, "openstack plan -f"];
    assert!(parts.iter().all(|part| err.contains(part)), "{err}");
    let args = on(data, &["apply", "-f", file, "--plan", digest]);
    let (code, out, err) = ended(home, &args).await;
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.starts_with("the parameters are changed\n"), "{out}");
    let again = on(data, &["plan", "-f", file]);
    eventually("the change to be made", || async {
        let (code, ..) = ended(home, &again).await;
        (code == Some(0)).then_some(())
    })
    .await;
    // It was for a world without the change.
    let (code, _, err) = ended(home, &args).await;
    assert_eq!(code, Some(1), "{err}");
}

#[tokio::test]
async fn what_is_wrong_with_the_parameters_is_said_and_nothing_is_started() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("cluster");
    let data = path.to_str().unwrap();
    let file = home.path().join("cloud.yaml");
    let name = file.to_str().unwrap();
    for (text, set, parts) in [
        (
            "release: 2026.1\n",
            None,
            ["cloud.yaml:1: release", "in quotes"],
        ),
        (
            "release: \"2024.9\"\n",
            None,
            ["cloud.yaml:1: release", "there is no release"],
        ),
        (
            "release: zed\nreplicas: 3\n",
            None,
            ["cloud.yaml:2: replicas", "not built yet"],
        ),
        (
            "release: zed\nregoin: x\n",
            None,
            ["regoin", "unknown field"],
        ),
        (
            "release: zed\nservices:\n  nova: {config: {scheduler: {wrokers: 2}}}\n",
            None,
            [
                "services.nova.config.scheduler.wrokers",
                "did you mean workers?",
            ],
        ),
        (
            "release: zed\n",
            Some("network.mtu"),
            ["--set network.mtu", "FIELD=VALUE"],
        ),
        (
            "release: zed\n",
            Some("network.mtu=9"),
            ["network.mtu", "1280 to 65535"],
        ),
        (
            "release: zed\n",
            Some("release.x=9"),
            ["--set release.x=9", "not an object"],
        ),
        ("release: [\n", None, ["cloud.yaml:", ""]),
    ] {
        std::fs::write(&file, text).unwrap();
        let mut args = on(data, &["up", "--exit-when-ready", "-f", name]);
        args.extend(set.into_iter().flat_map(|set| ["--set", set]));
        let (code, out, err) = ended(home.path(), &args).await;
        assert_eq!((code, out.as_str()), (Some(1), ""), "{text}");
        assert!(parts.iter().all(|part| err.contains(part)), "{text}: {err}");
        assert!(!path.exists(), "{text}");
    }
    let args = [
        "openstack",
        "up",
        "--kubeconfig",
        "/nowhere",
        "--exit-when-ready",
    ];
    let (code, _, err) = ended(home.path(), &args).await;
    assert_eq!(code, Some(1));
    assert!(err.contains("/nowhere"), "{err}");
}
