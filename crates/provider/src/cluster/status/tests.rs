use serde_json::json;

use super::*;

#[test]
fn a_problem_before_the_login_reports_nothing_about_authentication() {
    let spec = json!({"identityRef": {"name": "demo-cloud-config", "cloudName": "simulated"}});
    let mut object = OpenStackCluster::new("demo", serde_json::from_value(spec).unwrap());
    let text = "another object has the same identity";
    let problem = Problem::new(Type::Ready, Reason::InvalidClusterSpec, text);
    let now = Timestamp::now();
    let list = |object: &OpenStackCluster| object.status.clone().unwrap().conditions;
    unplanned(&mut object, &problem, now);
    let type_ = Type::OpenStackAuthenticationSucceeded.as_str();
    assert!(conditions::find(&list(&object), type_).is_none());
    // The condition of the login does not change.
    authenticated(&mut object, now);
    unplanned(&mut object, &problem, now);
    assert!(conditions::is_true(&list(&object), type_));
    let rejected = Problem::new(
        Type::OpenStackAuthenticationSucceeded,
        Reason::OpenStackAuthenticationFailed,
        "the password is wrong",
    );
    unplanned(&mut object, &rejected, now);
    assert!(!conditions::is_true(&list(&object), type_));
}

#[test]
fn a_load_balancer_that_is_pending_for_a_quarter_of_an_hour_is_a_problem() {
    let spec = json!({"identityRef": {"name": "demo-cloud-config", "cloudName": "simulated"}});
    let mut object = OpenStackCluster::new("demo", serde_json::from_value(spec).unwrap());
    let wait = Wait {
        about: Type::APIEndpointReady,
        message: "creating load balancer k8s".to_owned(),
        is_stuck: false,
        serves: false,
    };
    let plan = Plan {
        steps: Vec::new(),
        waits: vec![wait],
    };
    let start = Timestamp::now();
    verdicts(&mut object, &plan, [None, None], start);
    let after = |minutes: i64| {
        let now = start
            .checked_add(SignedDuration::from_mins(minutes))
            .unwrap();
        stuck(&object, &plan, now)
    };
    assert!(after(14).is_none());
    let problem = after(16).unwrap();
    assert!(
        problem
            .message
            .starts_with("creating load balancer k8s: this takes more than 15 minutes")
    );
    assert!(
        stuck(
            &object,
            &Plan::default(),
            start.checked_add(SignedDuration::from_mins(16)).unwrap()
        )
        .is_none()
    );
}
