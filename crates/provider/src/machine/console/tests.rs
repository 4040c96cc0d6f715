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
