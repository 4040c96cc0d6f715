//! `cinder-csi-plugin`, whose services are tested in their crates: how it starts, and how it ends; `csi check` and `csi orphans`
//! beside it.

use std::time::Duration;

use csi_spec::volume_capability::access_mode::Mode;
use csi_spec::volume_capability::{AccessMode, AccessType, MountVolume};
use csi_spec::{CreateVolumeRequest, GetPluginInfoRequest, ProbeRequest, VolumeCapability};
use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, ResourceExt as _};
use openstack::session::{Session, SessionOptions};
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::UnixStream;
use tokio::process::Command;

use crate::cloud::TestCloud;
use crate::manager::Cluster;
use crate::process::{Checked, PROGRAM, ferrostack, run, texts};

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_by_the_name_of_the_go_one_serves_its_socket_until_sigterm() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    std::os::unix::fs::symlink(PROGRAM, path("cinder-csi-plugin")).unwrap();
    // Nobody answers at this address.
    let conf =
        "[Global]\nauth-url = http://127.0.0.1:1/v3\nuser-id = u\npassword = p\ntenant-id = t\n";
    std::fs::write(path("cloud.conf"), conf).unwrap();
    let socket = path("csi.sock");
    let driver = Checked::of(Command::new(path("cinder-csi-plugin")))
        .arg(format!("--endpoint=unix://{}", socket.display()))
        .arg(format!("--cloud_config={}", path("cloud.conf").display()));
    let mut driver = driver.start();
    driver
        .line("of the socket", |line| line.starts_with("CSI at unix://"))
        .await;
    let stream = UnixStream::connect(&socket).await.unwrap();
    let limit = Duration::from_secs(60);
    let client = grpc::Client::connect(stream, "http://csi", limit, 1 << 20)
        .await
        .unwrap();
    let info = client.call(&GetPluginInfoRequest {}).await.unwrap();
    assert_eq!(info.name, "cinder.csi.openstack.org");
    let probe = client.call(&ProbeRequest {}).await.unwrap();
    assert_eq!(probe.ready, Some(false));
    let pid = i32::try_from(driver.child.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    driver.line("of the end", |line| line == "stopped").await;
    assert!(driver.child.wait().await.unwrap().success());
    assert!(!socket.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_that_cannot_start_ends_with_a_status_and_the_reason() {
    let home = tempfile::tempdir().unwrap();
    for (flags, status, words) in [
        (&[][..], 2, "--endpoint <ENDPOINT>"),
        (
            &["--endpoint=/csi/csi.sock"],
            2,
            "neither unix:///DIRECTORY/SOCKET nor tcp://ADDRESS:PORT",
        ),
        (
            &["--endpoint=unix:///csi/csi.sock"],
            1,
            "--cloud-config is missing: the controller service needs",
        ),
        (
            &[
                "--endpoint=unix:///nowhere/csi.sock",
                "--provide-controller-service=false",
            ],
            1,
            "cannot listen on unix:///nowhere/csi.sock: No such file or directory",
        ),
    ] {
        let args: Vec<&str> = std::iter::once("cinder-csi-plugin")
            .chain(flags.iter().copied())
            .collect();
        let output = run(home.path(), &args).await;
        assert_eq!(output.status.code(), Some(status), "{flags:?}");
        let (_, errors) = texts(&output);
        assert!(errors.contains(words), "{flags:?}: {errors}");
    }
}

/// A volume with a file system.
fn new_volume(name: &str) -> CreateVolumeRequest {
    CreateVolumeRequest {
        name: name.to_owned(),
        volume_capabilities: vec![VolumeCapability {
            access_mode: Some(AccessMode {
                mode: Mode::SingleNodeWriter.into(),
            }),
            access_type: Some(AccessType::Mount(MountVolume::default())),
        }],
        ..CreateVolumeRequest::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_driver_has_left_behind_is_known_by_the_uid_of_its_cluster() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name).display().to_string();
    let cloud = TestCloud::without_guests(home.path()).await;
    let cluster = Cluster::serve(home.path()).await;
    let (conf, kubeconfig, socket) = (path("cloud.conf"), path("kubeconfig"), path("csi.sock"));
    let generate = [
        "cloud-conf",
        "generate",
        "--cloud=simulated",
        "--write-to",
        &conf,
    ];
    let generated = ferrostack(home.path())
        .args(generate)
        .envs(cloud.variables());
    assert!(generated.output().await.status.success());
    let mut driver = ferrostack(home.path())
        .args([
            "cinder-csi-plugin",
            "-v=2",
            "--cluster=blue",
            "--provide-node-service=false",
        ])
        .args([
            "--endpoint",
            &format!("unix://{socket}"),
            "--cloud-config",
            &conf,
        ])
        .env("KUBECONFIG", &kubeconfig)
        .start();
    let knows = |line: &str| line.contains("has the uid of this cluster");
    driver.line("of the uid", knows).await;
    let stream = UnixStream::connect(&socket).await.unwrap();
    let limit = Duration::from_secs(60);
    let client = grpc::Client::connect(stream, "http://csi", limit, 1 << 20).await;
    let created = client.unwrap().call(&new_volume("pvc-lost")).await.unwrap();
    let id = created.volume.unwrap().volume_id;

    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    let uid = namespaces.get("kube-system").await.unwrap().uid().unwrap();
    let clouds = std::fs::read_to_string(path("clouds.yaml")).unwrap();
    let config = openstack::CloudConfig::parse(&clouds, "simulated").unwrap();
    let session = Session::connect(config, &SessionOptions::default())
        .await
        .unwrap();
    let volume = session.volume().get(&id).await.unwrap();
    assert_eq!(volume.metadata["cinder.csi.openstack.org/cluster-uid"], uid);

    let place = ["--cloud-config", conf.as_str(), "--kubeconfig", &kubeconfig];
    let orphans = |more: &[&'static str]| {
        let command = ferrostack(home.path()).args(["csi", "orphans"]);
        command.args(place).args(more).output()
    };
    let listed = orphans(&["--cluster=blue"]).await;
    let (text, errors) = texts(&listed);
    assert!(
        listed.status.success() && text.contains(&id),
        "{text}{errors}"
    );
    assert!(
        text.ends_with("1 orphans with 1 GiB; 0 of them with 0 GiB can be deleted\n"),
        "{text}"
    );
    let (text, _) = texts(&orphans(&["--cluster=red"]).await);
    assert_eq!(text, "There are no orphans.\n");
    let deleted = orphans(&["--cluster=blue", "--delete", "--yes", "--without-uid"]).await;
    assert!(deleted.status.success());
    assert_eq!(session.volume().get(&id).await.unwrap().status, "available");

    let check = ferrostack(home.path()).args(["csi", "check"]).args(place);
    let checked = check.output().await;
    let (text, errors) = texts(&checked);
    assert_eq!(checked.status.code(), Some(2), "{errors}");
    assert!(
        text.contains("error  CSIDriver/cinder.csi.openstack.org  "),
        "{text}"
    );
    assert!(text.ends_with("1 error, 0 warnings\n"), "{text}");
    driver.stop().await;
    cluster.close().await;
}
