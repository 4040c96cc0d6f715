//! What a URL path asks for.

use percent_encoding::percent_decode_str;

/// What a URL path asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/`.
    Root,
    Version,
    /// `/healthz`, `/livez`, `/readyz`, also with a check's name after it.
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
    Unknown,
}

/// A path below a group and version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) group: String,
    pub(crate) version: String,
    /// None for cluster-scoped resources and for lists over all namespaces.
    pub(crate) namespace: Option<String>,
    pub(crate) plural: String,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
}

/// Reads a path.
pub(crate) fn route(path: &str) -> Route {
    let parts: Vec<String> = path
        .split('/')
        .filter(|part| !part.is_empty())
        .map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned())
        .collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match *parts.as_slice() {
        [] => Route::Root,
        ["version"] => Route::Version,
        ["healthz" | "livez" | "readyz", ..] => Route::Health,
        ["metrics"] => Route::Metrics,
        ["_ferrostack", "backup"] => Route::Backup,
        ["api"] => Route::Api,
        ["apis"] => Route::Apis,
        ["apis", group] => Route::Group(group.to_owned()),
        ["api", version] => resources("", version),
        ["apis", group, version] => resources(group, version),
        ["openapi", "v2"] => Route::OpenApiV2,
        ["openapi", "v3"] => Route::OpenApiV3,
        ["openapi", "v3", "api", version] => open_api("", version),
        ["openapi", "v3", "apis", group, version] => open_api(group, version),
        ["api", version, ref rest @ ..] => object("", version, rest),
        ["apis", group, version, ref rest @ ..] => object(group, version, rest),
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

fn object(group: &str, version: &str, rest: &[&str]) -> Route {
    let mut path = Path {
        group: group.to_owned(),
        version: version.to_owned(),
        ..Path::default()
    };
    let rest = match rest {
        // A namespace itself and its subresources, not something inside it.
        ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => rest,
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => {
            path.namespace = Some((*namespace).to_owned());
            rest
        }
        rest => rest,
    };
    match *rest {
        [plural] => path.plural = plural.to_owned(),
        [plural, name] => {
            path.plural = plural.to_owned();
            path.name = Some(name.to_owned());
        }
        [plural, name, subresource] => {
            path.plural = plural.to_owned();
            path.name = Some(name.to_owned());
            path.subresource = Some(subresource.to_owned());
        }
        _ => return Route::Unknown,
    }
    Route::Object(path)
}
