use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn the_transition_time_moves_only_with_the_status() {
    let mut list = Vec::new();
    let ready = |holds: bool, reason: &str| Verdict::from_reported(Type::Ready, holds, reason);
    assert!(set(&mut list, ready(false, "Waiting"), Some(1), at(1)));
    assert!(set(&mut list, ready(false, "StillWaiting"), Some(1), at(2)));
    assert_eq!(list[0].last_transition_time.0, at(1));
    assert!(set(&mut list, ready(true, "Ready"), Some(1), at(3)));
    assert_eq!(list[0].last_transition_time.0, at(3));
    assert!(!set(&mut list, ready(true, "Ready"), Some(2), at(4)));
    assert_eq!(list[0].observed_generation, Some(2));
    assert!(is_true(&list, "Ready"));
}

#[test]
fn conditions_are_kept_sorted_and_unique() {
    let mut list = Vec::new();
    for type_ in [Type::Ready, Type::Available, Type::Ready] {
        set(
            &mut list,
            Verdict::from_reported(type_, true, "Ok"),
            None,
            at(1),
        );
    }
    let types: Vec<_> = list.iter().map(|c| c.type_.as_str()).collect();
    assert_eq!(types, ["Available", "Ready"]);
    remove(&mut list, "Ready");
    assert!(find(&list, "Ready").is_none());
}

#[test]
fn messages_begin_with_a_capital_unless_a_field_or_a_name_is_first() {
    for (text, expected) in [
        ("creating server a", "Creating server a"),
        ("Quota exceeded", "Quota exceeded"),
        (
            "failureDomain `mars` is not a zone",
            "failureDomain `mars` is not a zone",
        ),
        ("spec.version: too old", "spec.version: too old"),
        (
            "flavor: flavor `a` does not exist",
            "flavor: flavor `a` does not exist",
        ),
        ("etcd is external", "etcd is external"),
        ("* waiting for a", "* waiting for a"),
        ("", ""),
    ] {
        assert_eq!(sentence(text), expected);
    }
}

#[test]
fn a_message_of_any_length_is_stored_cut_and_without_control_characters() {
    let mut list = Vec::new();
    let of_a_node = format!("kubelet says \u{1b}[2J{}", "x".repeat(60_000));
    let verdict =
        || Verdict::from_reported(Type::Ready, false, "Waiting").because(of_a_node.as_str());
    set(&mut list, verdict(), None, at(1));
    assert_eq!(list[0].message.chars().count(), printable::MESSAGE_LIMIT);
    assert!(list[0].message.starts_with(r"kubelet says \u{1b}[2Jxxx"));
    assert!(
        !set(&mut list, verdict(), None, at(2)),
        "the same is no change"
    );
}

#[test]
fn every_word_has_a_meaning_and_is_found_by_its_value() {
    for type_ in Type::ALL {
        assert_eq!(Type::parse(type_.as_str()), Some(*type_));
        assert!(type_.meaning().ends_with('.'), "{type_}");
    }
    for reason in Reason::ALL {
        assert_eq!(Reason::parse(reason.as_str()), Some(*reason));
        assert!(reason.meaning().ends_with('.'), "{reason}");
    }
    assert_eq!(Reason::parse("VpcProvisioningStarted"), None);
    assert_eq!(
        Reason::InstanceRetried.meaning(),
        "Nova had no room for the server, and another one takes its place."
    );
}

#[test]
fn a_message_that_an_api_server_would_refuse_is_cut_off() {
    let message = |length: usize| {
        let verdict = Verdict::new(Type::Ready, false, Reason::NotReady);
        verdict.because("ä".repeat(length)).message
    };
    assert_eq!(message(LONGEST), "ä".repeat(LONGEST));
    let cut = message(LONGEST + 1);
    assert_eq!(cut.chars().count(), LONGEST);
    assert!(cut.ends_with("ä…"));
}
