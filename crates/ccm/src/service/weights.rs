//! Ready endpoints of a Service on the nodes, and weights of members by endpoints.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use api::k8s_openapi::api::core::v1::Service;
use api::k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use kube::runtime::reflector::Store;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Rejection;
use super::annotations::Given;

/// Annotation for weights, unknown to the Go manager.
pub(super) const ANNOTATION: &str = "member-weights";
/// Only value of the annotation.
const READY_ENDPOINTS: &str = "ready-endpoints";
/// Label of an EndpointSlice with the name of its Service.
pub(crate) const SERVICE_LABEL: &str = "kubernetes.io/service-name";
/// Maximum weight in Octavia.
const GREATEST: u32 = 256;
/// Time in which EndpointSlices may stay unknown without an event.
const PATIENCE: Duration = Duration::from_secs(10);

/// Ready endpoints by node.
pub(crate) type Counts = BTreeMap<String, u32>;

/// Weights of members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Weighting {
    /// All have the same weight.
    #[default]
    Equal,
    /// Present weights of the members, since the endpoints are not known yet.
    Kept,
    /// Weights by ready endpoints.
    By(Counts),
}

impl Weighting {
    /// Weight of a node's member; `None` for the default of Octavia, 1.
    pub(super) fn of(&self, node: &str) -> Option<i64> {
        let Self::By(counts) = self else {
            return None;
        };
        let greatest = counts.values().copied().max().unwrap_or(0);
        let count = counts.get(node).copied().unwrap_or(0);
        Some(match greatest {
            // Nowhere is an endpoint: no node is better than another.
            0 => 1,
            1..=GREATEST => count.into(),
            // In proportion, and never 0 where there is an endpoint.
            _ => i64::from(count.saturating_mul(GREATEST).div_ceil(greatest)),
        })
    }
}

/// True if the annotation asks for weights.
///
/// # Errors
/// The annotation has another value.
pub(super) fn asked(given: &Given<'_>) -> Result<bool, Rejection> {
    match given.text(ANNOTATION) {
        None => Ok(false),
        Some(READY_ENDPOINTS) => Ok(true),
        Some(_) => Err(given.wrong(
            ANNOTATION,
            "write ready-endpoints, or remove the annotation",
        )),
    }
}

/// True if a [`Service`] asks for weights, in an annotation that may be wrong.
pub(crate) fn are_asked(service: &Service) -> bool {
    asked(&Given::from_annotations(service.annotations())).unwrap_or(false)
}

/// Ready endpoints of a Service. An endpoint with an address of each family is in a slice of each, and counts once.
fn counts<'a>(slices: impl Iterator<Item = &'a EndpointSlice>) -> Counts {
    let mut addresses: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for slice in slices {
        for endpoint in slice.endpoints.iter().flatten() {
            let conditions = endpoint.conditions.as_ref();
            // An unknown state counts as ready, by the definition of the API.
            let is_ready = conditions.and_then(|conditions| conditions.ready) != Some(false);
            let node = endpoint.node_name.as_deref().filter(|_| is_ready);
            if let (Some(node), Some(address)) = (node, endpoint.addresses.first()) {
                let family = slice.address_type.as_str();
                addresses.entry((node, family)).or_default().insert(address);
            }
        }
    }
    let mut counts = Counts::new();
    for ((node, _), found) in addresses {
        let count = counts.entry(node.to_owned()).or_default();
        *count = (*count).max(u32::try_from(found.len()).unwrap_or(u32::MAX));
    }
    counts
}

/// Weights of a Service, and the time of a change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Current {
    pub(crate) weighting: Weighting,
    /// Time until weights follow the endpoints again, if different by now.
    pub(crate) changes_in: Option<Duration>,
    /// True if EndpointSlices seem unreadable.
    pub(crate) is_unknown: bool,
}

/// Weights of all Services.
pub(crate) struct Weights {
    slices: Store<EndpointSlice>,
    /// Time of the first need for endpoints: EndpointSlices are watched from then on.
    wanted: watch::Sender<Option<Instant>>,
    period: Duration,
    /// Counts behind the weights, and their time, by namespace and name.
    settled: Mutex<HashMap<(String, String), (Counts, Instant)>>,
}

impl Weights {
    /// Weights by the [`EndpointSlice`]s of a [`Store`]. Weights change at most once in each `period`.
    pub(crate) fn new(slices: Store<EndpointSlice>, period: Duration) -> Self {
        Self {
            slices,
            wanted: watch::Sender::new(None),
            period,
            settled: Mutex::default(),
        }
    }

    /// Waits until a Service needs endpoints.
    pub(crate) fn wanted(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut wanted = self.wanted.subscribe();
        async move {
            if wanted.wait_for(Option::is_some).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Endpoints of a [`Service`] now, if needed: for weights, or for members (`has_local_members`).
    pub(crate) fn of(&self, service: &Service, has_local_members: bool, now: Instant) -> Current {
        let key = (service.namespace().unwrap_or_default(), service.name_any());
        let is_asked = has_local_members || are_asked(service);
        if !super::is_wanted(service) || !is_asked {
            self.settled.lock().remove(&key);
            return Current::default();
        }
        self.wanted.send_if_modified(|since| {
            let is_first = since.is_none();
            since.get_or_insert(now);
            is_first
        });
        if !operator::store::is_listed(&self.slices) {
            let since = *self.wanted.borrow();
            let waited = since.map_or(Duration::ZERO, |since| now.duration_since(since));
            return Current {
                weighting: Weighting::Kept,
                changes_in: Some(Duration::from_secs(1)),
                is_unknown: waited >= PATIENCE,
            };
        }
        let all = self.slices.state();
        let of_service = |slice: &&Arc<EndpointSlice>| {
            slice.labels().get(SERVICE_LABEL) == Some(&key.1)
                && slice.namespace().as_ref() == Some(&key.0)
        };
        let counts = counts(all.iter().filter(of_service).map(|slice| &**slice));
        let (counts, changes_in) = self.settle(key, counts, now);
        Current {
            weighting: Weighting::By(counts),
            changes_in,
            is_unknown: false,
        }
    }

    /// Counts for weights: the given ones, unless others were settled less than a period ago. Also returns the time
    /// until the settled ones are replaced.
    fn settle(
        &self,
        key: (String, String),
        counts: Counts,
        now: Instant,
    ) -> (Counts, Option<Duration>) {
        let mut all = self.settled.lock();
        let (settled, since) = all.entry(key).or_insert_with(|| (counts.clone(), now));
        let left = self.period.checked_sub(now.duration_since(*since));
        match left.filter(|left| !left.is_zero() && *settled != counts) {
            Some(left) => (settled.clone(), Some(left)),
            None => {
                if *settled != counts {
                    (*settled, *since) = (counts, now);
                }
                (settled.clone(), None)
            }
        }
    }
}

/// Reduces an [`EndpointSlice`] to the fields for weights.
pub(crate) fn trim(slice: &mut EndpointSlice) {
    slice.metadata.managed_fields = None;
    slice.metadata.annotations = None;
    slice.ports = None;
    for endpoint in slice.endpoints.iter_mut().flatten() {
        endpoint.target_ref = None;
        endpoint.hints = None;
        endpoint.zone = None;
        endpoint.hostname = None;
        endpoint.deprecated_topology = None;
    }
}

#[cfg(test)]
mod tests {
    use kube::runtime::reflector::store::Writer;
    use serde_json::json;

    use super::*;

    fn slice(family: &str, endpoints: &[(&str, &str, Option<bool>)]) -> EndpointSlice {
        let endpoint = |(node, address, ready): &(&str, &str, Option<bool>)| json!({"nodeName": node, "addresses": [address], "conditions": {"ready": ready}});
        let endpoints: Vec<_> = endpoints.iter().map(endpoint).collect();
        let slice = json!({"addressType": family, "endpoints": endpoints});
        serde_json::from_value(slice).unwrap()
    }

    fn by(counts: &[(&str, u32)]) -> Counts {
        let pair = |(node, count): &(&str, u32)| ((*node).to_owned(), *count);
        counts.iter().map(pair).collect()
    }

    #[test]
    fn endpoints_that_are_ready_count_once_whatever_slices_and_families_they_are_in() {
        let slices = [
            slice(
                "IPv4",
                &[
                    ("a", "1", Some(true)),
                    ("a", "2", None),
                    ("b", "3", Some(false)),
                ],
            ),
            slice("IPv4", &[("a", "2", Some(true)), ("b", "4", Some(true))]),
            slice("IPv6", &[("a", "f1", Some(true)), ("a", "f2", Some(true))]),
        ];
        assert_eq!(counts(slices.iter()), by(&[("a", 2), ("b", 1)]));
        assert_eq!(counts([].iter()), Counts::new());
    }

    #[test]
    fn weights_are_the_counts_in_proportion_if_octavia_has_none_as_great() {
        let of = |counts: &[(&str, u32)], node: &str| Weighting::By(by(counts)).of(node);
        assert_eq!(of(&[("a", 2), ("b", 1)], "a"), Some(2));
        assert_eq!(of(&[("a", 2), ("b", 1)], "c"), Some(0));
        assert_eq!(of(&[("a", 512), ("b", 256), ("c", 1)], "a"), Some(256));
        assert_eq!(of(&[("a", 512), ("b", 256), ("c", 1)], "b"), Some(128));
        assert_eq!(of(&[("a", 512), ("b", 256), ("c", 1)], "c"), Some(1));
        // Without any endpoint, all are the same.
        assert_eq!(of(&[], "a"), Some(1));
        assert_eq!(Weighting::Equal.of("a"), None);
    }

    #[test]
    fn weights_change_at_most_once_in_a_period_and_end_at_the_last_counts() {
        let writer = Writer::<EndpointSlice>::default();
        let weights = Weights::new(writer.as_reader(), Duration::from_secs(10));
        let start = Instant::now();
        let settle = |count: u32, second: u64| {
            let key = ("default".to_owned(), "web".to_owned());
            let now = start + Duration::from_secs(second);
            let (counts, left) = weights.settle(key, by(&[("a", count)]), now);
            (counts["a"], left.map(|left| left.as_secs()))
        };
        assert_eq!(settle(1, 0), (1, None));
        assert_eq!(settle(2, 3), (1, Some(7)));
        assert_eq!(settle(3, 9), (1, Some(1)));
        // An unchanged count needs no time.
        assert_eq!(settle(1, 9), (1, None));
        assert_eq!(settle(4, 10), (4, None));
        assert_eq!(settle(5, 11), (4, Some(9)));
        assert_eq!(settle(5, 20), (5, None));
        assert_eq!(settle(6, 60), (6, None));
    }
}
