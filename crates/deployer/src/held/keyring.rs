//! Key of a user of Ceph, in a Secret of another owner.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;

use super::Credentials;
use crate::object::{Password, decoded};
use crate::parameters::Ceph;

/// The key of a Secret with a keyring.
const KEYRING: &str = "keyring";
/// The least length of a key of Ceph: type, time and length of a secret, in bytes.
const SHORTEST: usize = 12;
/// Keys of a Secret other than logins.
const OTHERS: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];

/// Possible logins in a Secret.
pub(super) fn of(secret: &Json) -> BTreeMap<String, Password> {
    let data = secret.get("data").and_then(Json::as_object);
    let keys = data.into_iter().flat_map(|it| it.keys());
    let logins = keys.filter(|it| !OTHERS.contains(&it.as_str()));
    logins
        .filter_map(|key| Some((key.clone(), decoded(secret, key)?)))
        .collect()
}

impl Credentials {
    /// Key of the user of the [`Ceph`].
    ///
    /// # Errors
    /// Problem of the Secret, with its field.
    pub(crate) fn ceph_key(&self, ceph: &Ceph) -> Result<Password, String> {
        let (name, user) = (&ceph.secret_name, &ceph.user);
        let reject = |problem: String| Err(format!("storage.ceph.secretName: {problem}"));
        let Some(given) = self.given.get(name) else {
            return reject(format!("there is no Secret {name} in the namespace"));
        };
        let key = match given.logins.get(KEYRING) {
            Some(keyring) => key_in(keyring.expose(), user),
            // Rook has the key alone, under the name of the CephClient.
            None => match given.logins.get(user) {
                Some(key) => Some(key.expose().trim()),
                None => {
                    return reject(format!(
                        "Secret {name} has neither a key {KEYRING}, with the output of `ceph auth get client.{user}`, nor a key {user}"
                    ));
                }
            },
        };
        let Some(key) = key else {
            return reject(format!(
                "the keyring in Secret {name} has no section [client.{user}] with a key: it is the output of `ceph auth get client.{user}`"
            ));
        };
        let bytes = STANDARD.decode(key).unwrap_or_default();
        match bytes.len() >= SHORTEST {
            true => Ok(Password::new(key)),
            false => reject(format!(
                "Secret {name} has no key of Ceph for client.{user}, as `ceph auth get-key client.{user}` prints it"
            )),
        }
    }
}

/// The key of a user in a keyring.
fn key_in<'a>(keyring: &'a str, user: &str) -> Option<&'a str> {
    let header = format!("[client.{user}]");
    let mut lines = keyring.lines().map(str::trim);
    lines.find(|line| *line == header)?;
    let mut section = lines.take_while(|line| !line.starts_with('['));
    section.find_map(|line| {
        let (name, value) = line.split_once('=')?;
        (name.trim() == "key").then(|| value.trim())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KEY: &str = "AQDgR0xpAAAAABAAa0XqYQk3mS0mC1u2mZ8m4A==";

    fn found(content: &[(&str, &str)]) -> Result<String, String> {
        let data: serde_json::Map<String, Json> = content
            .iter()
            .map(|(key, value)| ((*key).to_owned(), STANDARD.encode(value).into()))
            .collect();
        let secret = json!({"kind": "Secret", "metadata": {"name": "ceph"}, "data": data});
        let held = Credentials::complete("cloud", &[secret], || 7);
        let ceph = Ceph {
            monitors: vec!["192.0.2.1".to_owned()],
            user: "openstack".to_owned(),
            secret_name: "ceph".to_owned(),
        };
        held.ceph_key(&ceph).map(|it| it.expose().to_owned())
    }

    #[test]
    fn the_key_is_read_from_a_keyring_or_as_rook_has_it() {
        let keyring = format!(
            "[client.admin]\n\tkey = AQBother\n[client.openstack]\n\tkey = {KEY}\n\tcaps mon = \"profile rbd\"\n"
        );
        assert_eq!(found(&[("keyring", &keyring)]).unwrap(), KEY);
        let key = format!("{KEY}\n");
        assert_eq!(found(&[("openstack", &key)]).unwrap(), KEY);
    }

    #[test]
    fn a_secret_without_the_key_is_told_with_the_field_that_names_it() {
        for (content, problem) in [
            (
                &[("key", KEY)][..],
                "Secret ceph has neither a key keyring, with the output of `ceph auth get client.openstack`, nor a key openstack",
            ),
            (
                &[("keyring", "[client.admin]\n\tkey = AQB\n")],
                "the keyring in Secret ceph has no section [client.openstack] with a key: it is the output of `ceph auth get client.openstack`",
            ),
            (
                &[("keyring", "[client.openstack]\n\tkey = none\n")],
                "Secret ceph has no key of Ceph for client.openstack, as `ceph auth get-key client.openstack` prints it",
            ),
        ] {
            let message = format!("storage.ceph.secretName: {problem}");
            assert_eq!(found(content).unwrap_err(), message);
        }
    }
}
