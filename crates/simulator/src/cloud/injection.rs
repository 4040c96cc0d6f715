//! Fault injection: rules that delay, reject, drop or garble selected requests.

use parking_lot::Mutex;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Rule as posted to `/_simulator/faults`. Absent criteria match every request.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Rule {
    /// Set by the simulator.
    #[serde(skip_deserializing)]
    pub(crate) id: u64,
    /// First path segment of the service.
    pub(crate) service: Option<String>,
    pub(crate) method: Option<String>,
    /// Path pattern as in `/_simulator/requests`; `*` at the end matches any rest.
    pub(crate) route: Option<String>,
    /// Project id.
    pub(crate) project: Option<String>,
    /// Number of matching requests that pass first.
    pub(crate) after: u64,
    /// Number of requests until the rule is removed; unlimited if absent.
    pub(crate) count: Option<u64>,
    /// Fraction of affected requests, 0 to 1.
    pub(crate) probability: Option<f64>,
    /// True to process the request before the action replaces the answer.
    pub(crate) after_change: bool,
    #[serde(flatten)]
    pub(crate) action: Action,
    #[serde(skip_deserializing)]
    pub(crate) seen: u64,
}

/// Action of a rule. A delay can be combined with one of the others.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Action {
    /// Status of the answer, in the error form of the service.
    pub(crate) status: Option<u16>,
    /// Message of the error.
    pub(crate) message: Option<String>,
    /// Seconds for the `Retry-After` header of the error.
    pub(crate) retry_after: Option<u64>,
    /// Delay in milliseconds before the action.
    pub(crate) delay_ms: u64,
    /// Closes the connection without an answer.
    pub(crate) drop: bool,
    /// True to answer 200 with bytes that are not JSON.
    pub(crate) garbage: bool,
}

impl Action {
    /// Returns the delay.
    pub(crate) fn delay(&self) -> Duration {
        Duration::from_millis(self.delay_ms)
    }

    /// True if the action replaces the answer.
    pub(crate) fn replaces(&self) -> bool {
        self.status.is_some() || self.drop || self.garbage
    }
}

/// Active rules.
pub(crate) struct Injections {
    rules: Mutex<(Vec<Rule>, StdRng)>,
    next_id: AtomicU64,
    any: AtomicBool,
}

impl Default for Injections {
    fn default() -> Self {
        Self {
            rules: Mutex::new((Vec::new(), StdRng::seed_from_u64(1))),
            next_id: AtomicU64::new(1),
            any: AtomicBool::new(false),
        }
    }
}

impl Injections {
    /// True if there are rules; a fast check.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    /// Adds a [`Rule`] and returns it with its id.
    pub(crate) fn add(&self, mut rule: Rule) -> Rule {
        rule.id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.rules.lock().0.push(rule.clone());
        self.any.store(true, Ordering::Relaxed);
        rule
    }

    /// Returns the active [`Rule`]s.
    pub(crate) fn list(&self) -> Vec<Rule> {
        self.rules.lock().0.clone()
    }

    /// Removes one rule, or all.
    pub(crate) fn remove(&self, id: Option<u64>) {
        let mut rules = self.rules.lock();
        rules.0.retain(|rule| id.is_some_and(|id| rule.id != id));
        self.any.store(!rules.0.is_empty(), Ordering::Relaxed);
    }

    /// Returns the [`Action`] of the first rule that matches and is due, and true if the request is processed first.
    pub(crate) fn apply(
        &self,
        service: &str,
        method: &str,
        route: &str,
        project: &str,
    ) -> Option<(Action, bool)> {
        let mut guard = self.rules.lock();
        let (rules, random) = &mut *guard;
        let mut hit = None;
        for (index, rule) in rules.iter_mut().enumerate() {
            if !rule.matches(service, method, route, project) {
                continue;
            }
            rule.seen += 1;
            if rule.seen <= rule.after {
                continue;
            }
            if rule
                .probability
                .is_some_and(|share| random.random::<f64>() >= share)
            {
                continue;
            }
            hit = Some((index, rule.action.clone(), rule.after_change));
            break;
        }
        let (index, action, after_change) = hit?;
        if let Some(left) = &mut rules[index].count {
            *left = left.saturating_sub(1);
            if *left == 0 {
                rules.remove(index);
                self.any.store(!rules.is_empty(), Ordering::Relaxed);
            }
        }
        Some((action, after_change))
    }
}

impl Rule {
    fn matches(&self, service: &str, method: &str, route: &str, project: &str) -> bool {
        let is = |wanted: &Option<String>, have: &str| {
            wanted
                .as_ref()
                .is_none_or(|wanted| wanted.eq_ignore_ascii_case(have))
        };
        let on_route = self
            .route
            .as_ref()
            .is_none_or(|wanted| match wanted.strip_suffix('*') {
                Some(prefix) => route.starts_with(prefix),
                None => route == wanted,
            });
        is(&self.service, service)
            && is(&self.method, method)
            && is(&self.project, project)
            && on_route
    }
}
