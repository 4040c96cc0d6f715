//! Record of requests: counts by operation, and the last requests. Bodies and headers are never recorded, because of
//! secrets.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;
use serde::Serialize;

use super::service::Service;

/// Number of calls of an operation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct RequestCount {
    /// First path segment, such as `network`.
    pub service: String,
    /// HTTP method.
    pub method: String,
    /// Path pattern within the service, such as `/v2.0/ports/{id}`; `unknown` if no operation matches.
    pub route: String,
    /// Calls.
    pub count: u64,
}

/// One request in the log.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Entry {
    pub(crate) time: String,
    pub(crate) request_id: String,
    pub(crate) service: &'static str,
    pub(crate) method: String,
    /// With the query string.
    pub(crate) path: String,
    pub(crate) status: u16,
    pub(crate) milliseconds: f64,
    pub(crate) project_id: String,
    /// Message of the error, for a rejected request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// Counts and log.
#[derive(Default)]
pub(crate) struct Journal {
    counts: Mutex<BTreeMap<(Service, String, &'static str), u64>>,
    entries: Mutex<VecDeque<Entry>>,
}

const KEPT: usize = 1000;

impl Journal {
    /// Counts a request.
    pub(crate) fn count(&self, service: Service, method: &str, route: &'static str) {
        *self
            .counts
            .lock()
            .entry((service, method.to_owned(), route))
            .or_default() += 1;
    }

    /// Adds a request to the log.
    pub(crate) fn log(&self, entry: Entry) {
        let mut entries = self.entries.lock();
        if entries.len() == KEPT {
            entries.pop_front();
        }
        entries.push_back(entry);
    }

    /// Returns the counts of the OpenStack services.
    pub(crate) fn counts(&self) -> Vec<RequestCount> {
        let counts = self.counts.lock();
        counts
            .iter()
            .map(|((service, method, route), count)| RequestCount {
                service: service.segment().to_owned(),
                method: method.clone(),
                route: (*route).to_owned(),
                count: *count,
            })
            .collect()
    }

    /// Sets all counts to zero.
    pub(crate) fn reset(&self) {
        self.counts.lock().clear();
    }

    /// Returns the last `limit` requests, oldest first.
    pub(crate) fn last(&self, limit: usize) -> Vec<Entry> {
        let entries = self.entries.lock();
        entries
            .iter()
            .skip(entries.len().saturating_sub(limit))
            .cloned()
            .collect()
    }
}
