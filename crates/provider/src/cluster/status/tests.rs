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
    let type_ = Type::Authentication.as_str();
    assert!(conditions::find(&list(&object), type_).is_none());
    // The condition of the login does not change.
    authenticated(&mut object, now);
    unplanned(&mut object, &problem, now);
    assert!(conditions::is_true(&list(&object), type_));
    let rejected = Problem::new(
        Type::Authentication,
        Reason::OpenStackAuthenticationFailed,
        "the password is wrong",
    );
    unplanned(&mut object, &rejected, now);
    assert!(!conditions::is_true(&list(&object), type_));
}
