mod convergence;

use super::*;

fn trigger(most: Option<IntOrString>, range: Option<&str>) -> RemediationTrigger {
    RemediationTrigger {
        unhealthy_less_than_or_equal_to: most,
        unhealthy_in_range: range.map(str::to_owned),
    }
}

#[test]
fn machines_are_replaced_within_the_limits_only() {
    let number = |n| Some(IntOrString::Int(n));
    let share = |text: &str| Some(IntOrString::String(text.to_owned()));
    let cases = [
        // (trigger, expected, healthy, how many more; None: not allowed)
        (None, 3, 0, Some(0)),
        (None, 3, 3, Some(3)),
        (None, 0, 0, Some(0)),
        (Some(trigger(number(1), None)), 3, 2, Some(0)),
        (Some(trigger(number(1), None)), 3, 1, None),
        (Some(trigger(number(0), None)), 3, 3, Some(0)),
        (Some(trigger(number(0), None)), 3, 2, None),
        // Percentages round down.
        (Some(trigger(share("40%"), None)), 4, 3, Some(0)),
        (Some(trigger(share("40%"), None)), 4, 2, None),
        (Some(trigger(share("40%"), None)), 2, 1, None),
        (Some(trigger(None, Some("[2-3]"))), 5, 4, None),
        (Some(trigger(None, Some("[2-3]"))), 5, 3, Some(1)),
        (Some(trigger(None, Some("[2-3]"))), 5, 1, None),
        // The range comes first.
        (Some(trigger(number(5), Some("[2-3]"))), 5, 1, None),
    ];
    for (at, (trigger, expected, healthy, left)) in cases.into_iter().enumerate() {
        let found = allowed(trigger.as_ref(), expected, healthy);
        match left {
            Some(left) => assert_eq!(found, Allowed::Yes(left), "case {at}"),
            None => assert!(matches!(found, Allowed::No(_)), "case {at}: {found:?}"),
        }
    }
}

#[test]
fn a_refusal_names_the_limit_and_the_numbers() {
    let limit = trigger(Some(IntOrString::String("40%".to_owned())), None);
    let verdict = verdict(&allowed(Some(&limit), 4, 1));
    assert_eq!(
        (verdict.type_, verdict.reason.as_str()),
        ("RemediationAllowed", "TooManyUnhealthy")
    );
    let numbers = "(total: 4, unhealthy: 3, unhealthyLessThanOrEqualTo: 40%)";
    assert!(verdict.message.ends_with(numbers), "{}", verdict.message);
}
