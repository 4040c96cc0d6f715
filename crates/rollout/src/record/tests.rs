use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn entry(phase: Phase, is_over: bool) -> Entry {
    Entry::Upgrade {
        from: Release::Epoxy,
        to: Release::Gazpacho,
        phase,
        is_over,
        warnings: vec!["neutron-check: workers".to_owned()],
    }
}

#[test]
fn phases_have_their_seconds_and_the_end_changes_the_release() {
    let before = next(None, &Entry::Of(Release::Epoxy), at(0));
    assert_eq!(
        (before.current.as_str(), before.to.as_deref()),
        ("2025.1", None)
    );
    let status = next(Some(&before), &entry(Phase::Check, false), at(10));
    let status = next(Some(&status), &entry(Phase::Expand, false), at(17));
    let took = |status: &ReleaseStatus| {
        let phases = status.phases.iter();
        phases
            .map(|it| (it.name.clone(), it.seconds))
            .collect::<Vec<_>>()
    };
    let expected = [
        ("Check", Some(7)),
        ("Backup", Some(0)),
        ("Infra", Some(0)),
        ("Expand", None),
    ];
    assert_eq!(
        took(&status),
        expected.map(|(name, seconds)| (name.to_owned(), seconds))
    );
    assert_eq!(status.phase.as_deref(), Some("Expand"));
    assert_eq!(status.current, "2025.1");
    assert_eq!(status.warnings, ["neutron-check: workers"]);
    let status = next(Some(&status), &entry(Phase::Verify, true), at(40));
    assert_eq!(
        (status.current.as_str(), status.phase.as_deref()),
        ("2026.1", None)
    );
    assert_eq!(took(&status).len(), Phase::ALL.len());
    assert!(status.phases.iter().all(|it| it.seconds.is_some()));
    // The record of the last upgrade is kept.
    assert_eq!(
        next(Some(&status), &Entry::Of(Release::Gazpacho), at(99)),
        status
    );
}

#[test]
fn an_upgrade_that_is_given_up_leaves_no_record() {
    let status = next(None, &entry(Phase::Expand, false), at(0));
    let after = next(Some(&status), &Entry::Of(Release::Epoxy), at(5));
    let expected = ReleaseStatus {
        current: "2025.1".to_owned(),
        ..ReleaseStatus::default()
    };
    assert_eq!(after, expected);
    let check = |is_over| Entry::Check {
        from: Release::Epoxy,
        to: Release::Gazpacho,
        is_over,
        warnings: vec![],
    };
    let checked = next(Some(&after), &check(true), at(7));
    assert_eq!(
        (checked.phase.as_deref(), checked.phases[0].seconds),
        (Some("Check"), Some(0))
    );
    assert_eq!(checked.current, "2025.1");
    assert_eq!(
        next(Some(&checked), &Entry::Of(Release::Epoxy), at(9)),
        expected
    );
    // A later upgrade begins from the first phase.
    let again = next(Some(&status), &entry(Phase::Check, false), at(9));
    assert_eq!(
        again
            .phases
            .iter()
            .filter(|it| it.seconds.is_some())
            .count(),
        0,
        "{again:?}"
    );
}
