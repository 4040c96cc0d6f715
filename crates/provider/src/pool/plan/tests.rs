//! From any state of a pool, the plan converges and is then empty, and does no harm wherever it is cut.

use proptest::prelude::*;

use super::*;

/// A cloud and an API server that execute each step at once.
#[derive(Clone, Debug)]
struct Model {
    next: u32,
    observed: Observed,
    deleted: Vec<String>,
}

impl Model {
    fn perform(&mut self, step: &Step, wanted: &Wanted) {
        let observed = &mut self.observed;
        match step {
            Step::Release(name) => observed.answers.retain(|it| it.name != *name),
            Step::Give { claim, address } => {
                let ip = observed.ip(address).expect("a floating IP");
                assert!(ip.port_id.is_none(), "{address} is used by somebody");
                assert!(unusable(address, wanted, observed).is_none());
                assert!(observed.answers.iter().all(|it| it.address != *address));
                let uid = observed.claims.iter().find(|it| it.name == *claim);
                observed.answers.push(Answer {
                    name: claim.clone(),
                    claim: claim.clone(),
                    owner: uid.map(|it| it.uid.clone()),
                    address: address.clone(),
                });
            }
            Step::Tell(name) => {
                let mut claims = observed.claims.iter_mut();
                let claim = claims.find(|it| it.name == *name).expect("a claim");
                claim.answer = Some(name.clone());
            }
            Step::Tag(id) => change(observed, id, |ip| ip.tags = wanted.tags.clone()),
            Step::Delete(id) => {
                let ip = observed.ips.iter().find(|ip| ip.id == *id);
                let ip = ip.expect("a floating IP").clone();
                let address = &ip.floating_ip_address;
                assert_eq!(
                    Identity::of_pool(&*ip),
                    Some(wanted.id),
                    "{address} is another's"
                );
                assert!(ip.port_id.is_none(), "{address} is used");
                assert!(!wanted.given.contains(address));
                assert!(observed.answers.iter().all(|it| it.address != *address));
                observed.ips.retain(|ip| ip.id != *id);
                self.deleted.push(address.clone());
            }
            Step::Allocate => {
                self.next += 1;
                let ip = floating_ip(&format!("192.0.2.{}", 100 + self.next), Some(wanted.id));
                observed.ips.push(Arc::new(ip));
            }
        }
        let held = observed.answers.iter().filter(|it| observed.is_held(it));
        assert!(held.count() <= wanted.most.max(observed.claims.len()));
    }
}

fn change(observed: &mut Observed, id: &str, change: impl Fn(&mut FloatingIp)) {
    for ip in observed.ips.iter_mut().filter(|ip| ip.id == id) {
        let mut next = FloatingIp::clone(ip);
        change(&mut next);
        *ip = Arc::new(next);
    }
}

fn floating_ip(address: &str, pool: Option<Identity>) -> FloatingIp {
    FloatingIp {
        id: format!("id-{address}"),
        floating_ip_address: address.to_owned(),
        description: pool.map(|id| id.pool_description("p")).unwrap_or_default(),
        ..FloatingIp::default()
    }
}

fn id(text: &str) -> Identity {
    Identity::parse(text).unwrap()
}

fn ours() -> Identity {
    id("6f9f1a52-8a5e-4a2a-9a63-3f1d5a1b2c3d")
}

fn other() -> Identity {
    id("0a9f1a52-8a5e-4a2a-9a63-3f1d5a1b2c3d")
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let given = proptest::collection::btree_set(0..6_u8, 0..3);
    (
        given,
        0..5_usize,
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(|(given, most, keeps, tagging, is_deleting)| Wanted {
            id: ours(),
            given: given.into_iter().map(|n| format!("192.0.2.{n}")).collect(),
            most,
            reclaim: match keeps {
                true => ReclaimPolicy::Retain,
                false => ReclaimPolicy::Delete,
            },
            tags: if tagging {
                vec!["t".to_owned()]
            } else {
                Vec::new()
            },
            is_deleting,
        })
}

/// Floating IPs of all kinds, claims, and addresses with and without them.
fn observed() -> impl Strategy<Value = Observed> {
    let ip = (0..4_u8, any::<bool>());
    let ips = proptest::collection::vec(proptest::option::of(ip), 6);
    let claims = proptest::collection::vec((any::<bool>(), 0..4_u8, any::<bool>()), 0..5);
    (ips, claims).prop_map(|(ips, claims)| {
        let ips = ips.into_iter().enumerate().filter_map(|(n, kind)| {
            let (kind, at_port) = kind?;
            let address = format!("192.0.2.{n}");
            let mut ip = match kind {
                0 | 1 => floating_ip(&address, Some(ours())),
                2 => floating_ip(&address, Some(other())),
                _ => floating_ip(&address, None),
            };
            ip.port_id = at_port.then(|| "port".to_owned());
            Some(Arc::new(ip))
        });
        let mut observed = Observed {
            ips: ips.collect(),
            ..Observed::default()
        };
        for (n, (there, answer, at_rest)) in claims.into_iter().enumerate() {
            let (name, uid) = (format!("c{n}"), format!("u{n}"));
            if there {
                observed.claims.push(Claim {
                    name: name.clone(),
                    uid: uid.clone(),
                    answer: None,
                    is_at_rest: at_rest,
                });
            }
            if answer > 1 {
                observed.answers.push(Answer {
                    name: name.clone(),
                    claim: name,
                    owner: Some(if answer == 2 {
                        uid
                    } else {
                        "former".to_owned()
                    }),
                    address: format!("192.0.2.{n}"),
                });
            }
        }
        observed
    })
}

proptest! {
    #[test]
    fn a_pool_converges_wherever_its_plan_is_cut(
        wanted in wanted(),
        observed in observed(),
        cuts in proptest::collection::vec(0..4_usize, 0..4),
    ) {
        let before: Vec<_> = observed.ips.clone();
        let mut model = Model { next: 0, observed, deleted: Vec::new() };
        for cut in cuts {
            let steps = plan(&wanted, &model.observed).steps;
            for step in steps.iter().take(cut) {
                model.perform(step, &wanted);
            }
        }
        let mut rounds = 0;
        loop {
            let steps = plan(&wanted, &model.observed).steps;
            if steps.is_empty() {
                break;
            }
            rounds += 1;
            prop_assert!(rounds <= 6, "{steps:?}");
            for step in &steps {
                model.perform(step, &wanted);
            }
        }
        let last = plan(&wanted, &model.observed);
        let shares = shares(&wanted, &model.observed);
        if wanted.is_deleting {
            let left = model.observed.ours(wanted.id);
            let keeps = |ip: &&&Arc<FloatingIp>| !wanted.given.contains(&ip.floating_ip_address);
            prop_assert!(!last.waits.is_empty() || left.iter().filter(keeps).count() == 0);
        } else {
            for claim in model.observed.claims.iter().filter(|it| !it.is_at_rest) {
                let has = model.observed.answers.iter().any(|it| it.name == claim.name);
                prop_assert!(has != last.refused.contains(&claim.name));
            }
            prop_assert!(last.refused.is_empty() || shares.claimed.len() >= wanted.most);
        }
        // What is somebody else's is as before.
        for ip in before.iter().filter(|ip| Identity::of_pool(&***ip) != Some(wanted.id)) {
            prop_assert!(model.observed.ips.contains(ip));
        }
    }
}

fn pool(given: &[&str], reclaim: ReclaimPolicy) -> Wanted {
    Wanted {
        id: ours(),
        given: given.iter().map(|&address| address.to_owned()).collect(),
        most: usize::MAX,
        reclaim,
        tags: Vec::new(),
        is_deleting: false,
    }
}

#[test]
fn addresses_of_the_spec_are_given_out_before_those_that_were_allocated() {
    let wanted = pool(
        &["192.0.2.9", "192.0.2.8", "192.0.2.7"],
        ReclaimPolicy::Retain,
    );
    let observed = Observed {
        ips: vec![
            Arc::new(floating_ip("192.0.2.1", Some(ours()))),
            Arc::new(floating_ip("192.0.2.8", None)),
            Arc::new(floating_ip("192.0.2.9", None)),
        ],
        ..Observed::default()
    };
    let shares = shares(&wanted, &observed);
    assert_eq!(shares.available, ["192.0.2.9", "192.0.2.8", "192.0.2.1"]);
    let why = "the project has no floating IP 192.0.2.7".to_owned();
    assert_eq!(shares.failed, [("192.0.2.7".to_owned(), why)]);
}

#[test]
fn a_quota_that_is_exhausted_keeps_no_address_from_being_taken_back() {
    let claims = ["c1", "c2"].map(|name| Claim {
        name: name.to_owned(),
        uid: name.to_owned(),
        ..Claim::default()
    });
    let observed = Observed {
        claims: claims.to_vec(),
        answers: vec![Answer {
            name: "gone".to_owned(),
            claim: "gone".to_owned(),
            owner: None,
            address: "192.0.2.1".to_owned(),
        }],
        ips: vec![Arc::new(floating_ip("192.0.2.1", Some(ours())))],
    };
    let steps = plan(&pool(&[], ReclaimPolicy::Delete), &observed).steps;
    let expected = [
        Step::Release("gone".to_owned()),
        Step::Allocate,
        Step::Allocate,
    ];
    assert_eq!(steps, expected);
}
