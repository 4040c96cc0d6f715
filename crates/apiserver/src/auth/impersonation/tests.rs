use super::*;

fn headers(pairs: &[(&'static str, &[u8])]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, HeaderValue::from_bytes(value).unwrap());
    }
    headers
}

#[test]
fn a_malformed_header_is_rejected() {
    for unreadable in [
        headers(&[(USER, b"\xff")]),
        headers(&[(USER, b"jane"), (GROUP, b"dev"), (GROUP, b"\xc3")]),
        headers(&[(USER, b"jane"), (UID, b"\xff")]),
        headers(&[(USER, b"jane"), ("impersonate-extra-a", b"\xff")]),
        headers(&[(USER, b"jane"), ("impersonate-extra-%ff", b"a")]),
        headers(&[(USER, b"jane"), (USER, b"\xff")]),
    ] {
        let refused = wanted(&unreadable);
        let Err(Refusal::Status(error)) = refused else {
            panic!("{unreadable:?}: {refused:?}");
        };
        assert_eq!(error.code, 400);
    }
}

#[test]
fn a_name_may_be_any_utf_8() {
    let user = wanted(&headers(&[(USER, "jürgen".as_bytes())])).unwrap();
    assert_eq!(user.unwrap().name, "jürgen");
    let extra = [(USER, &b"jane"[..]), ("impersonate-extra-a%2fb%zz", b"1")];
    let user = wanted(&headers(&extra)).unwrap().unwrap();
    assert!(user.extra.contains_key("a%2fb%zz"));
}

#[test]
fn groups_without_a_user_are_rejected() {
    for (pairs, printed) in [
        ([(GROUP, &b"dev"[..])], "{Group  dev    }"),
        ([(UID, b"7")], "{UID  7  authentication.k8s.io/v1  }"),
        (
            [("impersonate-extra-a%2fb", b"x")],
            "{UserExtra  x  authentication.k8s.io/v1  a/b}",
        ),
    ] {
        let Err(Refusal::WithoutUser(why)) = wanted(&headers(&pairs)) else {
            panic!("{printed}");
        };
        assert_eq!(
            why,
            format!("requested [{printed}] without impersonating a user")
        );
    }
    assert!(wanted(&HeaderMap::new()).unwrap().is_none());
}

#[test]
fn only_complete_names_of_service_accounts_are_recognised() {
    assert_eq!(
        service_account("system:serviceaccount:a:b"),
        Some(("a", "b"))
    );
    for other in [
        "system:serviceaccount:a",
        "system:serviceaccount:a:b:c",
        "system:serviceaccount::b",
        "system:serviceaccount:A:b",
    ] {
        assert_eq!(service_account(other), None, "{other}");
    }
}
