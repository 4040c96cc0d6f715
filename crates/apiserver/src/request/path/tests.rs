use super::*;

fn of(path: &str) -> Route {
    target(path).route
}

#[test]
fn a_document_has_one_path() {
    assert_eq!(of("/metrics"), Route::Metrics);
    assert_eq!(target("/%6detrics").path, "/metrics");
    assert_eq!(of("/%6detrics"), Route::Metrics);
    for other in [
        "/metrics/",
        "//metrics",
        "/metrics//",
        "/./metrics",
        "metrics",
    ] {
        assert_eq!(of(other), Route::Unknown, "{other}");
    }
    for other in [
        "//_ferrostack/backup",
        "/_ferrostack//backup",
        "/_ferrostack/backup/",
    ] {
        assert_eq!(of(other), Route::Unknown, "{other}");
    }
    assert_eq!(of("/healthz/ping"), Route::Health);
    assert_eq!(of("/healthz/ping/more"), Route::Unknown);
    assert_eq!(of("/%ff"), Route::Unknown);
    assert!(matches!(of("/api/../metrics"), Route::Object(_)));
}

#[test]
fn an_escaped_slash_is_a_slash_in_a_path_of_objects() {
    let plain = of("/api/v1/namespaces/kube-system/secrets/x");
    assert_eq!(of("/api/v1/namespaces/kube-system%2Fsecrets/x"), plain);
    assert_eq!(of("/api/v1/namespaces/kube-system/secrets/x/"), plain);
    assert!(matches!(plain, Route::Object(_)));
}

#[test]
fn a_path_of_objects_without_a_route_is_authorized_as_a_request_for_them() {
    for misplaced in [
        "//api/v1/namespaces/a/secrets",
        "/api//v1/namespaces/a/secrets",
        "/api/v1/namespaces//secrets",
        "/api/v1/namespaces/a/pods/b/log/c",
    ] {
        assert!(matches!(of(misplaced), Route::Misplaced(_)), "{misplaced}");
    }
    let Route::Misplaced(path) = of("//api/v1/namespaces/a/secrets") else {
        panic!("a path of objects");
    };
    assert_eq!(
        (path.namespace.as_deref(), path.plural.as_str()),
        (Some("a"), "secrets")
    );
}
