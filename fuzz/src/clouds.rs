//! Targets for the credentials of a cloud: clouds.yaml, and bundles of certificates.

use openstack::{CloudConfig, cloud_names, transport};

/// Reads each entry with [`CloudConfig::parse`]: a cloud that is the same when it is written and read again, or an error
/// in one line. An entry that is not there is refused.
pub fn yaml(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let names = match cloud_names(text) {
        Ok(names) => names,
        Err(error) => return in_one_line(&error),
    };
    for name in &names {
        match CloudConfig::parse(text, name) {
            Ok(cloud) => survives(&cloud),
            Err(error) => in_one_line(&error),
        }
    }
    let other = names.concat() + "x";
    assert!(CloudConfig::parse(text, &other).is_err());
}

fn survives(cloud: &CloudConfig) {
    use secrecy::ExposeSecret;
    assert!(!cloud.auth_url.is_empty());
    let written = cloud.to_clouds_yaml();
    let names = cloud_names(written.expose_secret());
    let name = names.ok().and_then(|mut names| names.pop());
    let again = name.map(|name| CloudConfig::parse(written.expose_secret(), &name));
    // Certificates of clients are in files of their own.
    if cloud.client_certificate.is_none() {
        assert!(matches!(again, Some(Ok(again)) if again == *cloud));
    }
}

fn in_one_line(error: &openstack::Error) {
    let message = error.to_string();
    assert!(!message.is_empty());
    assert!(!message.contains('\n'), "{message}");
}

/// Counts the certificates of a bundle: at least one, or an error.
pub fn bundle(data: &[u8]) {
    match transport::certificates_in(data) {
        Ok(count) => assert!(count > 0),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
