//! Counters of the webhook.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Review {
    review: &'static str,
    answer: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    review: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Status {
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Source {
    source: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct File {
    file: &'static str,
}

/// Metrics of one webhook.
#[derive(Clone, Debug)]
pub struct Metrics {
    reviews: Family<Review, Counter>,
    seconds: Family<Kind, Histogram>,
    keystone: Family<Status, Counter>,
    tokens: Family<Source, Counter>,
    unusable: Family<File, Gauge>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            reviews: Family::default(),
            seconds: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.0001, 4.0, 9))
            }),
            keystone: Family::default(),
            tokens: Family::default(),
            unusable: Family::default(),
        }
    }
}

impl Metrics {
    /// Registers all metrics in a [`Registry`].
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "ferrostack_keystone_auth_reviews",
            "Reviews by kind and answer",
            self.reviews.clone(),
        );
        registry.register(
            "ferrostack_keystone_auth_review_seconds",
            "Time of reviews by kind",
            self.seconds.clone(),
        );
        registry.register(
            "ferrostack_keystone_auth_keystone_requests",
            "Requests to Keystone by status; 0 is none",
            self.keystone.clone(),
        );
        registry.register(
            "ferrostack_keystone_auth_tokens",
            "Tokens by where their identity is from: cache, keystone, or no request at all",
            self.tokens.clone(),
        );
        registry.register(
            "ferrostack_keystone_auth_unusable",
            "Whether the newest content of a file or ConfigMap cannot be used",
            self.unusable.clone(),
        );
    }

    pub(crate) fn review(&self, review: &'static str, answer: &'static str, took: Duration) {
        self.reviews.get_or_create(&Review { review, answer }).inc();
        let seconds = self.seconds.get_or_create(&Kind { review });
        seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn keystone(&self, status: u16) {
        self.keystone.get_or_create(&Status { status }).inc();
    }

    pub(crate) fn token(&self, source: &'static str) {
        self.tokens.get_or_create(&Source { source }).inc();
    }

    /// Sets the gauge for a `file` with unusable new content.
    pub fn unusable(&self, file: &'static str, unusable: bool) {
        let gauge = self.unusable.get_or_create(&File { file });
        gauge.set(i64::from(unusable));
    }
}
