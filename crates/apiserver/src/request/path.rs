//! Routes of URL paths. A path is decoded once, and the same text is routed and authorized: with two decoders that
//! disagree, a request could pass the wrong check.

use percent_encoding::percent_decode_str;

/// Decoded URL path and its route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Decoded path, compared with the rules for documents.
    pub(crate) path: String,
    pub(crate) route: Route,
}

/// Route of a URL path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/`.
    Root,
    Version,
    /// `/healthz`, `/livez`, `/readyz`, also followed by the name of a check.
    Health,
    Metrics,
    /// `/_ferrostack/backup`.
    Backup,
    /// `/api`.
    Api,
    /// `/apis`.
    Apis,
    /// `/apis/<group>`.
    Group(String),
    /// `/api/v1`, `/apis/<group>/<version>`.
    Resources {
        group: String,
        version: String,
    },
    OpenApiV2,
    OpenApiV3,
    /// `/openapi/v3/apis/<group>/<version>`.
    OpenApiV3Group {
        group: String,
        version: String,
    },
    Object(Path),
    /// Path of objects without a route, such as `//api/v1/pods`: authorized as a request for the objects, then 404.
    Misplaced(Path),
    Unknown,
}

/// Path below a group and version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) group: String,
    pub(crate) version: String,
    /// `None` for cluster-scoped resources and for lists across all namespaces.
    pub(crate) namespace: Option<String>,
    pub(crate) plural: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

/// Reads the path of a URL.
pub(crate) fn target(raw: &str) -> Target {
    match percent_decode_str(raw).decode_utf8() {
        Ok(path) => Target {
            route: route(&path),
            path: path.into_owned(),
        },
        Err(_) => Target {
            path: raw.to_owned(),
            route: Route::Unknown,
        },
    }
}

/// [`Route`] of a path. Each document has exactly one path; only documents of kube-apiserver's router may have a trailing
/// slash.
fn route(path: &str) -> Route {
    match path {
        "/" | "" => return Route::Root,
        "/version" | "/version/" => return Route::Version,
        "/healthz" | "/livez" | "/readyz" => return Route::Health,
        "/metrics" => return Route::Metrics,
        "/_ferrostack/backup" => return Route::Backup,
        "/openapi/v2" => return Route::OpenApiV2,
        "/openapi/v3" => return Route::OpenApiV3,
        _ => {}
    }
    let trimmed = path.trim_matches('/');
    let segments: Vec<&str> = trimmed.split('/').collect();
    let regular = path
        .strip_prefix('/')
        .is_some_and(|rest| rest.trim_end_matches('/') == trimmed && !segments.contains(&""));
    match *segments.as_slice() {
        ["healthz" | "livez" | "readyz", _] if regular && !path.ends_with('/') => Route::Health,
        ["openapi", "v3", "api", version] if regular => open_api("", version),
        ["openapi", "v3", "apis", group, version] if regular => open_api(group, version),
        ["api"] if regular => Route::Api,
        ["apis"] if regular => Route::Apis,
        ["apis", group] if regular => Route::Group(group.to_owned()),
        ["api", version] if regular => resources("", version),
        ["apis", group, version] if regular => resources(group, version),
        ["api", version, ref rest @ ..] if !rest.is_empty() => object("", version, rest, regular),
        ["apis", group, version, ref rest @ ..] if !rest.is_empty() => {
            object(group, version, rest, regular)
        }
        _ => Route::Unknown,
    }
}

fn resources(group: &str, version: &str) -> Route {
    Route::Resources {
        group: group.to_owned(),
        version: version.to_owned(),
    }
}

fn open_api(group: &str, version: &str) -> Route {
    Route::OpenApiV3Group {
        group: group.to_owned(),
        version: version.to_owned(),
    }
}

/// Parts of a path, as authorized by kube-apiserver (`RequestInfoFactory`).
fn object(group: &str, version: &str, rest: &[&str], regular: bool) -> Route {
    let mut path = Path {
        group: group.to_owned(),
        version: version.to_owned(),
        ..Path::default()
    };
    let rest = match rest {
        // A namespace itself or one of its subresources, rather than an object in it.
        ["namespaces", _] | ["namespaces", _, "status" | "finalize", ..] => rest,
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => {
            path.namespace = Some((*namespace).to_owned());
            rest
        }
        rest => rest,
    };
    let part = |index: usize| rest.get(index).map(|part| (*part).to_owned());
    path.plural = part(0).unwrap_or_default();
    path.name = part(1).filter(|name| !name.is_empty());
    path.subresource = part(2);
    // The rest belongs to the kubelet.
    let proxied = matches!(rest, ["nodes", _, "proxy", ..]) && path.namespace.is_none();
    if regular && (rest.len() <= 3 || proxied) {
        Route::Object(path)
    } else {
        Route::Misplaced(path)
    }
}

#[cfg(test)]
mod tests;
