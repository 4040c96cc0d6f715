//! `/metrics` in the text format of Prometheus, under the names of kube-apiserver.
//!
//! Labels are bounded: a resource in a URL becomes a label only if served.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use apimachinery::kinds::{Registry, Resource};
use http::Method;
use parking_lot::Mutex;

use crate::request::path::{Path, Route};
use crate::request::query::Query;
use crate::store::Store;

/// Upper bounds of the duration buckets in seconds, as in kube-apiserver.
const BUCKETS: [f64; 24] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0,
    10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 120.0,
];

/// Size of an API server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Number of stored objects.
    pub objects: usize,
    /// Total size of their JSON in bytes.
    pub object_bytes: usize,
    /// Revision of the last write.
    pub revision: u64,
    /// Number of open watches.
    pub watches: usize,
    /// Memory of the past in bytes: logs of events, lines of watches, and objects that are not current.
    pub past_bytes: usize,
    /// Size of the database file and its log in bytes; 0 in memory.
    pub database_bytes: u64,
}

/// Counters and histograms of requests.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    counts: Mutex<BTreeMap<(Labels, u16), u64>>,
    durations: Mutex<BTreeMap<Labels, Durations>>,
    reading: AtomicI64,
    writing: AtomicI64,
    watches: Mutex<BTreeMap<Labels, i64>>,
}

/// Labels of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Labels {
    verb: &'static str,
    group: String,
    version: String,
    resource: String,
    subresource: String,
    scope: &'static str,
    dry_run: bool,
}

#[derive(Clone, Debug, Default)]
struct Durations {
    count: u64,
    seconds: f64,
    buckets: [u64; BUCKETS.len()],
}

/// Counts a request as running until dropped.
pub(crate) struct Running<'a> {
    requests: &'a Requests,
    kind: &'a AtomicI64,
    labels: Labels,
}

/// Counts a watch as running until dropped.
pub(crate) struct Watching {
    requests: Arc<Requests>,
    labels: Labels,
}

impl Requests {
    /// Counts a request as begun.
    pub(crate) fn begin(&self, labels: Labels) -> Running<'_> {
        let kind = match labels.verb {
            "GET" | "LIST" | "WATCH" => &self.reading,
            _ => &self.writing,
        };
        kind.fetch_add(1, Ordering::Relaxed);
        Running {
            requests: self,
            kind,
            labels,
        }
    }
}

impl Running<'_> {
    /// Counts the end of the request.
    pub(crate) fn end(self, code: u16, took: Duration) {
        let mut counts = self.requests.counts.lock();
        *counts.entry((self.labels.clone(), code)).or_default() += 1;
        drop(counts);
        // The duration of a watch is not recorded, since it says nothing about the server.
        if self.labels.verb != "WATCH" {
            let mut durations = self.requests.durations.lock();
            let found = durations.entry(self.labels.clone()).or_default();
            found.observe(took.as_secs_f64());
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.kind.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Durations {
    fn observe(&mut self, seconds: f64) {
        self.count += 1;
        self.seconds += seconds;
        for (bound, bucket) in BUCKETS.iter().zip(&mut self.buckets) {
            *bucket += u64::from(seconds <= *bound);
        }
    }
}

impl Watching {
    pub(crate) fn new(requests: &Arc<Requests>, labels: Labels) -> Self {
        *requests.watches.lock().entry(labels.clone()).or_default() += 1;
        Self {
            requests: Arc::clone(requests),
            labels,
        }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let mut watches = self.requests.watches.lock();
        if let Some(count) = watches.get_mut(&self.labels) {
            *count -= 1;
            if *count == 0 {
                watches.remove(&self.labels);
            }
        }
    }
}

impl Labels {
    /// [`Labels`] of a request for a served resource.
    pub(crate) fn for_route(
        registry: &Registry,
        route: &Route,
        method: &Method,
        query: &Query,
    ) -> Self {
        let verb = match *method {
            Method::GET | Method::HEAD => "GET",
            Method::POST => "POST",
            Method::PUT => "PUT",
            Method::PATCH => "PATCH",
            Method::DELETE => "DELETE",
            _ => "OTHER",
        };
        let unnamed = Self {
            verb,
            ..Self::default()
        };
        let Route::Object(path) = route else {
            return unnamed;
        };
        let found = registry.find(&path.group, &path.plural);
        let Some(version) = found
            .as_ref()
            .and_then(|resource| resource.version(&path.version))
        else {
            return unnamed;
        };
        let subresource = path.subresource.clone().unwrap_or_default();
        let known = matches!(subresource.as_str(), "" | "status" | "scale")
            || version.subresources.contains(&subresource.as_str());
        Self {
            verb: verb_of(verb, path, query),
            group: path.group.clone(),
            version: path.version.clone(),
            resource: path.plural.clone(),
            subresource: if known { subresource } else { String::new() },
            scope: scope(path, verb == "POST"),
            dry_run: query.all("dryRun").any(|value| value == "All"),
        }
    }

    /// [`Labels`] of a watch of a [`Resource`] in a version; `name` and `namespace` as in the URL.
    pub(crate) fn watch(
        resource: &Resource,
        version: &str,
        namespace: &str,
        name: Option<&str>,
    ) -> Self {
        Self {
            verb: "WATCH",
            group: resource.group.clone(),
            version: version.to_owned(),
            resource: resource.plural.clone(),
            scope: match (name, namespace) {
                (Some(_), _) => "resource",
                (None, "") => "cluster",
                (None, _) => "namespace",
            },
            ..Self::default()
        }
    }

    fn text(&self) -> String {
        format!(
            "component=\"apiserver\",dry_run=\"{}\",group=\"{}\",resource=\"{}\",scope=\"{}\",subresource=\"{}\",verb=\"{}\",version=\"{}\"",
            if self.dry_run { "All" } else { "" },
            self.group,
            self.resource,
            self.scope,
            self.subresource,
            self.verb,
            self.version
        )
    }
}

fn verb_of(verb: &'static str, path: &Path, query: &Query) -> &'static str {
    match (verb, &path.name) {
        ("GET", _) if query.flag("watch") => "WATCH",
        ("GET", None) => "LIST",
        ("DELETE", None) => "DELETECOLLECTION",
        _ => verb,
    }
}

fn scope(path: &Path, creates: bool) -> &'static str {
    match (&path.name, &path.namespace) {
        (Some(_), _) => "resource",
        (None, _) if creates => "resource",
        (None, Some(_)) => "namespace",
        (None, None) => "cluster",
    }
}

/// All metrics in the text format, from [`Stats`], [`Requests`] and the [`Store`].
pub(crate) fn text(stats: Stats, requests: &Requests, store: &Store) -> String {
    let mut out = String::new();
    of_requests(requests, &mut out);
    of_objects(store, &mut out);
    for (name, help, value) in [
        (
            "apiserver_storage_object_bytes",
            "Bytes of the JSON of all objects.",
            stats.object_bytes as u64,
        ),
        (
            "apiserver_storage_revision",
            "Revision of the last write.",
            stats.revision,
        ),
        (
            "apiserver_registered_watchers",
            "Watches being served.",
            stats.watches as u64,
        ),
        (
            "apiserver_storage_size_bytes",
            "Bytes of the database file and its log.",
            stats.database_bytes,
        ),
    ] {
        head(&mut out, name, help, "gauge");
        let _ = writeln!(out, "{name} {value}");
    }
    out
}

// Writing to a string cannot fail.

fn head(out: &mut String, name: &str, help: &str, kind: &str) {
    let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
}

fn of_requests(requests: &Requests, out: &mut String) {
    let name = "apiserver_current_inflight_requests";
    head(out, name, "Requests being answered.", "gauge");
    for (kind, count) in [
        ("mutating", &requests.writing),
        ("readOnly", &requests.reading),
    ] {
        let count = count.load(Ordering::Relaxed);
        let _ = writeln!(out, "{name}{{request_kind=\"{kind}\"}} {count}");
    }
    let name = "apiserver_longrunning_requests";
    head(
        out,
        name,
        "Watches being served, by what they watch.",
        "gauge",
    );
    for (labels, count) in &*requests.watches.lock() {
        let _ = writeln!(out, "{name}{{{}}} {count}", labels.text());
    }
    let name = "apiserver_request_total";
    head(
        out,
        name,
        "Requests, by what they ask and how they ended.",
        "counter",
    );
    for ((labels, code), count) in &*requests.counts.lock() {
        let labels = labels.text();
        let _ = writeln!(out, "{name}{{code=\"{code}\",{labels}}} {count}");
    }
    let name = "apiserver_request_duration_seconds";
    head(out, name, "How long requests took.", "histogram");
    for (labels, durations) in &*requests.durations.lock() {
        let labels = labels.text();
        for (bound, count) in BUCKETS.iter().zip(durations.buckets) {
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bound}\"}} {count}");
        }
        let (count, sum) = (durations.count, durations.seconds);
        let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
        let _ = writeln!(out, "{name}_sum{{{labels}}} {sum}");
        let _ = writeln!(out, "{name}_count{{{labels}}} {count}");
    }
}

fn of_objects(store: &Store, out: &mut String) {
    let name = "apiserver_storage_objects";
    head(out, name, "Objects stored, by resource.", "gauge");
    let state = store.read();
    let mut collections: Vec<_> = state.populated().cloned().collect();
    collections.sort();
    for collection in collections {
        let count = state.range(&collection, "", None).count();
        let (group, plural) = collection.split_once('/').unwrap_or(("", &collection));
        let resource = crate::error::qualified(plural, group);
        let _ = writeln!(out, "{name}{{resource=\"{resource}\"}} {count}");
    }
}

#[cfg(test)]
mod tests;
