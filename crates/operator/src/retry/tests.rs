use super::*;

#[test]
fn pauses_double_up_to_a_minute_and_success_forgets() {
    let failures = Failures::default();
    let pauses: Vec<_> = (0..12)
        .map(|_| failures.pause("a", When::Backoff).unwrap().as_millis())
        .collect();
    assert!((200..=220).contains(&pauses[0]), "{pauses:?}");
    assert!((400..=440).contains(&pauses[1]), "{pauses:?}");
    assert!((60_000..=66_000).contains(&pauses[11]), "{pauses:?}");
    failures.forget(&"a");
    assert!(failures.pause("a", When::Backoff).unwrap() <= Duration::from_millis(220));
}

#[test]
fn conflicts_are_tried_soon_but_not_forever() {
    let failures = Failures::default();
    for _ in 0..9 {
        assert_eq!(failures.pause("a", When::Now), Some(SOON));
    }
    for _ in 0..20 {
        failures.pause("a", When::Now);
    }
    assert!(failures.pause("a", When::Now).unwrap() >= LONGEST);
}

#[test]
fn what_only_a_change_can_mend_is_not_tried_again() {
    let failures = Failures::default();
    assert_eq!(failures.pause("a", When::OnChange), None);
    assert_eq!(failures.pause("a", When::After(LONGEST)), Some(LONGEST));
}

#[test]
fn a_conflict_is_recognised_under_any_action_and_a_taken_name_is_none() {
    #[derive(Debug, thiserror::Error)]
    #[error("{action}")]
    struct Doing {
        action: &'static str,
        source: Box<kube::Error>,
    }
    let answer = |reason: &str| {
        let status = kube::core::Status::failure("no", reason).with_code(409);
        kube::Error::Api(Box::new(status))
    };
    let under = |source| Doing {
        action: "changing MachineSet a",
        source: Box::new(source),
    };
    assert!(is_conflict(&answer("Conflict")));
    assert!(is_conflict(&under(answer("Conflict"))));
    assert!(!is_conflict(&answer("AlreadyExists")));
    assert!(!is_conflict(&under(answer("AlreadyExists"))));
    assert!(!is_conflict(&std::io::Error::other("Conflict")));
}
