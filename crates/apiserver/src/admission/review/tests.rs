use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{denial, verify};

fn answer(response: &Value) -> Value {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

#[test]
fn an_answer_must_have_the_uid_and_the_kind_of_its_review() {
    let patch = STANDARD.encode("[]");
    for (review, mutating, problem) in [
        (json!({}), true, "webhook response was absent"),
        (
            answer(&json!({"uid": "v"})),
            true,
            "expected response.uid=\"u\", got \"v\"",
        ),
        (
            json!({"kind": "X", "apiVersion": "v1", "response": {"uid": "u"}}),
            true,
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got v1, Kind=X",
        ),
        (
            answer(&json!({"uid": "u", "patch": patch})),
            true,
            "webhook returned response.patch but not response.patchType",
        ),
        (
            answer(&json!({"uid": "u", "patchType": "JSONPatch"})),
            true,
            "webhook returned response.patchType but not response.patch",
        ),
        (
            answer(&json!({"uid": "u", "patch": patch, "patchType": "JSONPatch"})),
            false,
            "validating webhook may not return response.patch",
        ),
        (
            answer(&json!({"uid": "u", "patchType": "JSONPatch"})),
            false,
            "validating webhook may not return response.patchType",
        ),
    ] {
        assert_eq!(
            verify(&review, "v1", "u", mutating).unwrap_err(),
            problem,
            "{review}"
        );
    }
}

#[test]
fn answers_in_v1beta1_are_validated_less_strictly() {
    let answered = verify(
        &json!({"response": {"allowed": true}}),
        "v1beta1",
        "u",
        true,
    );
    assert!(answered.unwrap().allowed);
}

#[test]
fn a_denial_names_the_hook_and_keeps_its_status() {
    for (result, code, message) in [
        (
            json!(null),
            400,
            "admission webhook \"h\" denied the request without explanation",
        ),
        (
            json!({"reason": "Because"}),
            400,
            "admission webhook \"h\" denied the request: Because",
        ),
        (
            json!({"message": "no", "code": 200}),
            400,
            "admission webhook \"h\" denied the request: no",
        ),
        (
            json!({"message": "no", "code": 418}),
            418,
            "admission webhook \"h\" denied the request: no",
        ),
    ] {
        let error = denial("h", &result);
        let status = error.status();
        assert_eq!((error.code, &status["message"]), (code, &json!(message)));
        assert_eq!(status["code"], code);
        assert_eq!(status["reason"], result["reason"]);
    }
}

proptest::proptest! {
    #[test]
    fn no_answer_of_a_hook_panics(review in crate::webhook::tests::any_json(), mutating: bool) {
        let _ = verify(&review, "v1", "u", mutating);
        let _ = verify(&answer(&review), "v1beta1", "u", mutating);
        let _ = denial("h", &review).status();
    }
}
