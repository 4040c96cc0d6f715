//! `cinder-csi-plugin`, whose services are tested in their crates: how it starts, and how it ends.

use std::time::Duration;

use csi_spec::{GetPluginInfoRequest, ProbeRequest};
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::UnixStream;
use tokio::process::Command;

use crate::process::{Checked, PROGRAM, run, texts};

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
