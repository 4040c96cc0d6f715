use super::*;

#[test]
fn each_may_do_what_kubeadm_grants() {
    let certificate = |group: &str| Who::Certificate {
        name: "x".to_owned(),
        groups: vec![group.to_owned()],
    };
    let (admin, node) = (certificate("system:masters"), certificate("system:nodes"));
    let (token, nobody) = (Who::BootstrapToken("abcdef".to_owned()), Who::Anonymous);
    let config = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config";
    let info = "/api/v1/namespaces/kube-public/configmaps/cluster-info";
    for (who, method, path, expected) in [
        (&admin, Method::DELETE, "/api/v1/nodes/a", true),
        (
            &certificate("kubeadm:cluster-admins"),
            Method::POST,
            "/api/v1/nodes",
            true,
        ),
        (&node, Method::GET, "/api/v1/nodes", false),
        (&node, Method::GET, "/livez", true),
        (&token, Method::GET, config, true),
        (&token, Method::PUT, config, false),
        (&token, Method::GET, "/api/v1/nodes/a", true),
        (&token, Method::GET, "/api/v1/nodes", false),
        (&token, Method::GET, "/api/v1/nodes/a/proxy", false),
        (
            &token,
            Method::GET,
            "/api/v1/namespaces/kube-system/secrets",
            false,
        ),
        (&nobody, Method::GET, info, true),
        (&nobody, Method::DELETE, info, false),
        (&nobody, Method::GET, config, false),
        (&nobody, Method::GET, "/healthz/ping", true),
        (&nobody, Method::GET, "/", false),
    ] {
        assert_eq!(may(who, &method, path), expected, "{who:?} {method} {path}");
    }
}
