//! Settings of Horizon: Python, in place of Debian's `local_settings.py`, by a table of the release.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Value as Json, json};

use crate::config::Source;
use crate::finding::{Finding, Severity};
use crate::object::Password;
use crate::options::nearest;
use crate::parameters::Parameters;
use crate::release::Release;
use crate::service::edge;

/// File of the settings.
pub(super) const SETTINGS: &str = "/etc/openstack-dashboard/local_settings.py";
/// File read after [`SETTINGS`].
pub(super) const SECRET: &str = "/etc/openstack-dashboard/local_settings.d/50-secret.py";
/// Account whose password signs sessions and tokens of forms.
pub(super) const KEY: &str = "sessions-horizon";
/// Directory of the package with the compressed static files.
pub(super) const STATIC: &str = "/var/lib/openstack-dashboard/static";
const KEYSTONE: &str = "http://keystone:5000/v3";

/// Reason why users cannot set settings of the image.
const IMAGE: &str = "the static files are made with it when the image is built";
/// Settings without a default here that users cannot set.
const FIXED: [(&str, &str); 11] = [
    ("AVAILABLE_THEMES", IMAGE),
    ("HORIZON_COMPRESS_OFFLINE_CONTEXT_BASE", IMAGE),
    ("INTEGRATION_TESTS_SUPPORT", IMAGE),
    ("MEDIA_ROOT", "nothing is stored in the Pod"),
    ("MEDIA_URL", "nothing is stored in the Pod"),
    ("NG_TEMPLATE_CACHE_AGE", IMAGE),
    ("OPENSTACK_KEYSTONE_ENDPOINT_TYPE", INSIDE),
    (
        "OPENSTACK_PROFILER",
        "there is no store for what it measures",
    ),
    ("POLICY_FILES_PATH", "the policies are those of the image"),
    ("SECRET_KEY", "it is made once, and is in a Secret"),
    ("THEME_COLLECTION_DIR", IMAGE),
];
/// Name of the cache of sessions.
const SESSIONS: &str = "sessions";
const INSIDE: &str = "services call each other inside the cluster";

/// Settings of a release open to users.
#[derive(Debug, Default, Deserialize)]
struct Table {
    #[cfg(test)]
    version: String,
    settings: BTreeMap<String, Kind>,
}

/// Type of a setting, by its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Boolean,
    Integer,
    String,
    List,
    Map,
    /// No default, or one computed by Horizon.
    Any,
}

impl Kind {
    fn problem(self, value: &Json) -> Option<&'static str> {
        let (fits, words) = match self {
            Self::Boolean => (value.is_boolean(), "it has to be true or false"),
            Self::Integer => (
                value.is_i64() || value.is_u64(),
                "it has to be a whole number",
            ),
            Self::String => (value.is_string(), "it has to be a text"),
            Self::List => (value.is_array(), "it has to be a list"),
            Self::Map => (value.is_object(), "it has to be a map"),
            Self::Any => (true, ""),
        };
        (!fits).then_some(words)
    }
}

/// [`Table`]s in the order of [`Release::ALL`]. A test checks each of them.
static TABLES: [LazyLock<Table>; Release::ALL.len()] = [
    LazyLock::new(|| parsed(include_str!("../../../options/zed/horizon.json"))),
    LazyLock::new(|| parsed(include_str!("../../../options/2025.1/horizon.json"))),
    LazyLock::new(|| parsed(include_str!("../../../options/2026.1/horizon.json"))),
];

fn parsed(text: &str) -> Table {
    serde_json::from_str(text).unwrap_or_default()
}

type Settings = BTreeMap<String, (Json, Source)>;

/// Settings demanded by the cloud's structure, and defaults.
fn ours(parameters: &Parameters) -> Settings {
    let region = parameters.region.as_str();
    let mut settings = Settings::new();
    let mut set = |name: &str, value: Json, source| {
        settings.insert(name.to_owned(), (value, source));
    };
    let sessions = Source::Structure("sessions are in the cache of the cloud");
    set("CACHES", caches(parameters.release), sessions.clone());
    if parameters.release == Release::Gazpacho {
        set("SESSION_CACHE_ALIAS", SESSIONS.into(), sessions.clone());
    }
    let engine = "django.contrib.sessions.backends.cache";
    set("SESSION_ENGINE", engine.into(), sessions);
    let inside = Source::Structure(INSIDE);
    set("OPENSTACK_KEYSTONE_URL", KEYSTONE.into(), inside.clone());
    set("OPENSTACK_ENDPOINT_TYPE", "internalURL".into(), inside);
    let of_region = Source::Parameter("region");
    set(
        "AVAILABLE_REGIONS",
        json!([[KEYSTONE, region]]),
        of_region.clone(),
    );
    set("DEFAULT_SERVICE_REGIONS", json!({"*": region}), of_region);
    let image = Source::Structure(IMAGE);
    set("COMPRESS_OFFLINE", true.into(), image.clone());
    set("STATIC_ROOT", STATIC.into(), image.clone());
    set("STATIC_URL", "/static/".into(), image.clone());
    set("WEBROOT", "/".into(), image);
    let debug = "pages with errors would show settings and tokens";
    set("DEBUG", false.into(), Source::Structure(debug));
    set(
        "LOGGING",
        logging(),
        Source::Default("logs are read with kubectl logs"),
    );
    // The kubelet and the edge inside the cluster, and forwarded ports.
    let mut hosts = vec![super::NAME.to_owned(), "localhost".to_owned()];
    if let Some(exposure) = edge::of(parameters) {
        hosts.push(exposure.host.clone());
        hosts.extend(
            exposure
                .nodes()
                .into_iter()
                .filter(|it| *it != exposure.host),
        );
        let edge = Source::Structure("the edge ends TLS and sets the headers");
        let header = json!(["HTTP_X_FORWARDED_PROTO", "https"]);
        set("SECURE_PROXY_SSL_HEADER", header, edge.clone());
        set(
            "SECURE_PROXY_ADDR_HEADER",
            "HTTP_X_FORWARDED_FOR".into(),
            edge.clone(),
        );
        set("CSRF_COOKIE_SECURE", true.into(), edge.clone());
        set("SESSION_COOKIE_SECURE", true.into(), edge);
    }
    set("ALLOWED_HOSTS", json!(hosts), Source::Parameter("exposure"));
    settings
}

/// Caches in one memcached. Horizon also caches parts of its pages: another release would use parts of the old one,
/// with names of files missing in the new one. Sessions are shared by both releases.
fn caches(release: Release) -> Json {
    let backend = match release {
        Release::Zed => "django.core.cache.backends.memcached.MemcachedCache",
        Release::Epoxy | Release::Gazpacho => {
            "django.core.cache.backends.memcached.PyMemcacheCache"
        }
    };
    let cache = json!({"BACKEND": backend, "LOCATION": "memcached:11211"});
    match release {
        Release::Zed | Release::Epoxy => json!({"default": cache}),
        Release::Gazpacho => {
            let mut pages = cache.clone();
            pages["KEY_PREFIX"] = release.name().into();
            json!({"default": pages, SESSIONS: cache})
        }
    }
}

fn logging() -> Json {
    json!({
        "version": 1,
        "disable_existing_loggers": false,
        "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["console"], "level": "WARNING"},
        // Who logs in, and who fails to.
        "loggers": {"openstack_auth": {"level": "INFO"}},
    })
}

/// Every [`Finding`] about the settings of the user.
pub(crate) fn check(parameters: &Parameters) -> Vec<Finding> {
    let mut findings = Vec::new();
    judge(parameters, |finding| findings.push(finding));
    findings
}

/// All settings: defaults, and above these the accepted settings of the user.
fn judge(parameters: &Parameters, mut report: impl FnMut(Finding)) -> Settings {
    let mut settings = ours(parameters);
    for (name, value) in &parameters.services.horizon.config {
        match problem(name, value, &settings, parameters.release) {
            None => {
                settings.insert(name.clone(), (value.clone(), Source::User));
            }
            Some(message) => report(Finding {
                severity: Severity::Error,
                path: format!("services.horizon.config.{name}"),
                message,
            }),
        }
    }
    settings
}

/// Reason why a setting of the user is rejected.
fn problem(name: &str, value: &Json, ours: &Settings, release: Release) -> Option<String> {
    if let Some((_, why)) = FIXED.into_iter().find(|it| it.0 == name) {
        return Source::Structure(why)
            .forbids()
            .map(|it| it.replace("option", "setting"));
    }
    if let Some((_, source)) = ours.get(name) {
        return source.forbids().map(|it| it.replace("option", "setting"));
    }
    let table = TABLES.get(release as usize)?;
    let Some(kind) = table.settings.get(name) else {
        let near = nearest(name, table.settings.keys().map(String::as_str));
        let near = near.map(|it| format!("; did you mean {it}?"));
        let near = near.unwrap_or_default();
        return Some(format!("horizon {release} has no setting {name}{near}"));
    };
    kind.problem(value).map(str::to_owned)
}

/// File without the secret.
pub(super) fn public(parameters: &Parameters) -> String {
    let mut text = "# Made from the parameters of the cloud.\n".to_owned();
    for (name, (value, _)) in judge(parameters, |_| ()) {
        let _ = writeln!(text, "{name} = {}", python(&value));
    }
    text
}

/// File of the secret.
pub(super) fn secret(key: &Password) -> String {
    format!("SECRET_KEY = {}\n", python(&key.expose().into()))
}

/// Value in the syntax of Python.
fn python(value: &Json) -> String {
    match value {
        Json::Null => "None".to_owned(),
        Json::Bool(true) => "True".to_owned(),
        Json::Bool(false) => "False".to_owned(),
        // The escapes of JSON are those of Python.
        Json::Number(_) | Json::String(_) => value.to_string(),
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(python).collect();
            format!("[{}]", items.join(", "))
        }
        Json::Object(entries) => {
            let entry = |(key, value): (&String, &Json)| {
                format!("{}: {}", Json::from(key.as_str()), python(value))
            };
            let entries: Vec<String> = entries.iter().map(entry).collect();
            format!("{{{}}}", entries.join(", "))
        }
    }
}

#[cfg(test)]
mod tests;
