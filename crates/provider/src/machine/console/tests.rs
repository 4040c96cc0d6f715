use super::failure;

#[test]
fn kubeadms_own_words_are_found_among_the_noise() {
    let console = "[  12.3] systemd: started\n\
        [ 14.0] cloud-init[812]: error: something small\n\
        [ 15.2] cloud-init[812]: error execution phase preflight: couldn't validate the identity of the API Server: x509\r\n\
        [ 16.0] login:";
    let line = failure(console).unwrap();
    assert!(
        line.ends_with("couldn't validate the identity of the API Server: x509"),
        "{line}"
    );
}

#[test]
fn a_healthy_console_tells_of_nothing() {
    assert_eq!(failure("[ 12.3] systemd: started\nlogin:"), None);
}
