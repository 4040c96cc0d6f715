use super::*;

fn secret(id: &str, expiration: Option<&str>, signing: &str) -> Value {
    let encode = |text: &str| STANDARD.encode(text);
    let mut secret = json!({
        "type": TOKEN,
        "data": {
            "token-id": encode(id),
            "token-secret": encode("0123456789abcdef"),
            "usage-bootstrap-signing": encode(signing),
        },
    });
    if let Some(expiration) = expiration {
        secret["data"]["expiration"] = encode(expiration).into();
    }
    secret
}

#[test]
fn exactly_the_valid_signing_tokens_sign() {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let tokens: Vec<StoredToken> = [
        secret("aaaaaa", None, "true"),
        secret("bbbbbb", Some("2026-01-01T00:00:01Z"), "true"),
        secret("cccccc", Some("2026-01-01T00:00:00Z"), "true"),
        secret("dddddd", None, "false"),
        secret("eeeeee", Some("soon"), "true"),
        json!({"type": "Opaque", "data": {}}),
        json!({"type": TOKEN, "data": {"token-id": "*"}}),
    ]
    .iter()
    .filter_map(stored_token)
    .collect();
    assert_eq!(tokens.len(), 5);
    let mut info =
        json!({"data": {"kubeconfig": "k", "jws-kubeconfig-zzzzzz": "old", "other": "x"}});
    let patch = signature_patch(&info, &tokens, now);
    let keys: Vec<&str> = patch.keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "jws-kubeconfig-aaaaaa",
            "jws-kubeconfig-bbbbbb",
            "jws-kubeconfig-zzzzzz"
        ]
    );
    assert_eq!(patch["jws-kubeconfig-zzzzzz"], Value::Null);

    info["data"]
        .as_object_mut()
        .unwrap()
        .remove("jws-kubeconfig-zzzzzz");
    info["data"]
        .as_object_mut()
        .unwrap()
        .extend(patch.into_iter().filter(|(_, v)| !v.is_null()));
    assert!(
        signature_patch(&info, &tokens, now).is_empty(),
        "signing again changes nothing"
    );
    assert!(signature_patch(&json!({}), &tokens, now).is_empty());
}
