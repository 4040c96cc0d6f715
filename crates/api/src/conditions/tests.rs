use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

#[test]
fn the_transition_time_moves_only_with_the_status() {
    let mut list = Vec::new();
    let ready = |holds: bool, reason: &str| Verdict::new("Ready", holds, reason);
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
    for type_ in ["Ready", "Available", "Ready"] {
        set(&mut list, Verdict::new(type_, true, "Ok"), None, at(1));
    }
    let types: Vec<_> = list.iter().map(|c| c.type_.as_str()).collect();
    assert_eq!(types, ["Available", "Ready"]);
    remove(&mut list, "Ready");
    assert!(find(&list, "Ready").is_none());
}
