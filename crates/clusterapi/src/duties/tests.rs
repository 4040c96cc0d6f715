use api::conditions::Status;
use api::k8s_openapi::jiff::Timestamp;

use super::TYPE;
use crate::control_plane::ControlPlaneError;
use crate::error::Doing;

type Duties = super::Duties<ControlPlaneError>;

fn conflict() -> ControlPlaneError {
    let status = kube::core::Status::failure("changed", "Conflict").with_code(409);
    let answer: kube::Result<()> = Err(kube::Error::Api(Box::new(status)));
    let error = answer.doing(|| "changing Machine a".to_owned());
    error.unwrap_err().into()
}

fn good<T>(value: T) -> Result<T, ControlPlaneError> {
    Ok(value)
}

#[test]
fn all_that_failed_and_waits_is_in_one_condition() {
    let mut duties = Duties::default();
    assert!(duties.verdict(&[]).is_none(), "nothing was ever wrong");
    assert_eq!(duties.note(good(1)), Some(1));
    let failed = ControlPlaneError::Etcd("no member adds it".to_owned());
    assert_eq!(duties.note(Err::<(), _>(failed)), None);
    duties.note(Err::<(), _>(ControlPlaneError::KubeadmConfigMap));
    duties.wait(["Machine b waits".to_owned()]);
    let verdict = duties.verdict(&[]).unwrap();
    assert_eq!(
        (verdict.status, verdict.reason.as_str()),
        (Status::False, "InternalError")
    );
    let lines: Vec<_> = verdict.message.lines().collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert_eq!(lines[0], "* etcd: no member adds it");
    assert_eq!(lines[2], "* Machine b waits");
    assert!(matches!(duties.done(), Err(ControlPlaneError::Etcd(_))));
}

#[test]
fn the_condition_is_true_after_the_last_problem() {
    let mut list = Vec::new();
    let mut duties = Duties::default();
    duties.wait(["Machine b waits".to_owned()]);
    let verdict = duties.verdict(&list).unwrap();
    assert_eq!(verdict.reason, "Blocked");
    api::conditions::set(&mut list, verdict, None, Timestamp::UNIX_EPOCH);
    let after = Duties::default().verdict(&list).unwrap();
    assert_eq!((after.type_, after.status), (TYPE.as_str(), Status::True));
    assert!(duties.done().is_ok(), "waiting is no error");
}

#[test]
fn a_write_conflict_is_repeated_and_not_reported() {
    let mut duties = Duties::default();
    duties.note(Err::<(), _>(conflict()));
    assert!(duties.verdict(&[]).is_none());
    let error = duties.done().unwrap_err();
    assert!(operator::retry::is_conflict(&error));
    // Another error decides when the reconcile is repeated.
    let mut both = Duties::default();
    both.note(Err::<(), _>(conflict()));
    both.note(Err::<(), _>(ControlPlaneError::KubeadmConfigMap));
    assert!(matches!(
        both.done(),
        Err(ControlPlaneError::KubeadmConfigMap)
    ));
}
