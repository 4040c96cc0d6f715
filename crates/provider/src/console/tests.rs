use super::failure;

#[test]
fn kubeadms_own_words_are_found_among_the_noise() {
    let console = "[  12.3] systemd: started\n\
        [ 14.0] cloud-init[812]: error: something small\n\
        [ 15.2] cloud-init[812]: error execution phase preflight: couldn't validate the identity of the API Server: x509\r\n\
        [ 16.0] login:";
    let line = failure(console).unwrap();
    assert!(
        line.ends_with("couldn't validate the identity of the API Server: x509"),
        "{line}"
    );
}

#[test]
fn every_check_of_kubeadm_that_failed_is_named() {
    // The output of a real kubeadm, run by cloud-init, which tried twice.
    let console = "[ 1.0] cloud-init[2]: [ERROR Port-10250]: Port 10250 is in use\n\
        [ 2.0] cloud-init[2]: error: error execution phase preflight: preflight checks failed\n\
        [ 9.0] cloud-init[2]: [preflight] Some fatal errors occurred:\n\
        [ 9.0] cloud-init[2]:         [ERROR FileAvailable--etc-kubernetes-kubelet.conf]: /etc/kubernetes/kubelet.conf already exists\n\
        [ 9.0] cloud-init[2]:         [ERROR Swap]: running with swap on is not supported\n\
        [ 9.0] cloud-init[2]: [preflight] If you know what you are doing, you can make a check non-fatal with `--ignore-preflight-errors=...`\n\
        [ 9.0] cloud-init[2]: error: error execution phase preflight: preflight checks failed\n\
        [ 9.1] cloud-init[2]: cc_scripts_user.py[WARNING]: Failed to run module scripts-user (scripts in /var/lib/cloud/instance/scripts)";
    assert_eq!(
        failure(console).unwrap(),
        "[ERROR FileAvailable--etc-kubernetes-kubelet.conf]: /etc/kubernetes/kubelet.conf already exists; \
         [ERROR Swap]: running with swap on is not supported"
    );
}

#[test]
fn a_healthy_console_tells_of_nothing() {
    assert_eq!(failure("[ 12.3] systemd: started\nlogin:"), None);
}

#[test]
fn a_member_that_is_not_in_sync_yet_is_no_failure() {
    // Of a real machine whose join succeeded later.
    let retried = r#"[27768.116277] cloud-init[239]: {"level":"warn","ts":"2026-11-22T20:57:51.073124Z","logger":"etcd-client","caller":"v3@v3.6.4/retry_interceptor.go:65","msg":"retrying of unary invoker failed","method":"/etcdserverpb.Cluster/MemberPromote","attempt":0,"error":"rpc error: code = FailedPrecondition desc = etcdserver: can only promote a learner member which is in sync with leader"}"#;
    assert_eq!(failure(retried), None);
    let failed = format!("[1.0] cloud-init[2]: error: no such host\n{retried}\n");
    let failed = failure(&failed).unwrap();
    assert!(failed.ends_with("error: no such host"), "{failed}");
}

#[test]
fn an_image_without_kubeadm_is_named_before_what_cloud_init_makes_of_it() {
    let console = "[ 9.0] cloud-init[239]: /var/lib/cloud/instance/scripts/runcmd: 3: kubeadm: not found\n\
        [ 9.1] cloud-init[239]: 2026-11-23 11:00:00,000 - cc_scripts_user.py[WARNING]: Failed to run module scripts-user (scripts in /var/lib/cloud/instance/scripts)\n\
        [ 9.1] cloud-init[239]: 2026-11-23 11:00:00,001 - util.py[WARNING]: Running module scripts-user (<module 'cloudinit.config.cc_scripts_user' from '/usr/lib/python3/dist-packages/cloudinit/config/cc_scripts_user.py'>) failed";
    let line = failure(console).unwrap();
    assert!(line.ends_with("kubeadm: not found"), "{line}");
}

#[test]
fn user_data_in_no_known_format_are_named_and_not_shown() {
    let console = "[ 2.0] cloud-init[98]: 2026-11-23 11:00:00,000 - __init__.py[WARNING]: Unhandled non-multipart (text/x-not-multipart) userdata: 'b'password: secret'...'\n\
        [ 9.0] cloud-init[239]: Cloud-init v. 22.4.2 finished at Mon, 23 Nov 2026 11:00:00 +0000. Datasource DataSourceOpenStackLocal [net,ver=2].  Up 9.00 seconds";
    let line = failure(console).unwrap();
    assert!(
        line.ends_with("Unhandled non-multipart (text/x-not-multipart) userdata"),
        "{line}"
    );
}
