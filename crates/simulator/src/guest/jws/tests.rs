use super::*;

#[test]
fn a_signature_holds_for_its_content_token_and_secret_only() {
    let secret = SecretString::from("0123456789abcdef");
    let signature = sign("kubeconfig", "abcdef", &secret);
    assert!(verify(&signature, "kubeconfig", "abcdef", &secret));
    assert!(!verify(&signature, "kubeconfig!", "abcdef", &secret));
    assert!(!verify(&signature, "kubeconfig", "bbcdef", &secret));
    assert!(!verify(
        &signature,
        "kubeconfig",
        "abcdef",
        &SecretString::from("1123456789abcdef")
    ));
    for damaged in ["", "..", "a..b", "eyJ9..", &signature.replace("..", ".")] {
        assert!(
            !verify(damaged, "kubeconfig", "abcdef", &secret),
            "{damaged}"
        );
    }
}

#[test]
fn the_header_is_that_of_the_bootstrap_signer() {
    let signature = sign("x", "abcdef", &SecretString::from("0123456789abcdef"));
    assert!(
        signature.starts_with("eyJhbGciOiJIUzI1NiIsImtpZCI6ImFiY2RlZiJ9.."),
        "{signature}"
    );
}
