//! Certificate of the edge, issued by an authority of the cloud.
//!
//! Both keys are made from a secret of the cloud, and signatures depend on nothing else: the same cloud with the same
//! names has the same bytes, so that a certificate is part of the desired state like every other file, and changes with
//! the names.

use std::net::IpAddr;

use keys::EcdsaKey;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, SignatureAlgorithm,
};
use sha2::{Digest as _, Sha256};

use crate::cloud::Cloud;
use crate::held::Credentials;
use crate::object::Password;
use crate::parameters::Exposure;

/// Certificate with its key, and the issuing authority, as PEM.
#[derive(Clone, Debug)]
pub(crate) struct Issued {
    /// Certificate of the authority, to be trusted by clients.
    pub(crate) authority: String,
    /// Certificate.
    pub(crate) certificate: String,
    /// Key of the certificate.
    pub(crate) key: Password,
}

/// Certificate for the names of the edge, without expiry; users who want expiry give a certificate in a Secret.
///
/// # Errors
/// Names not allowed in a certificate.
pub(crate) fn issued(
    cloud: &Cloud,
    held: &Credentials,
    exposure: &Exposure,
) -> Result<Issued, String> {
    let failed = |error: &dyn std::fmt::Display| {
        format!(
            "exposure: there is no certificate for {}: {error}",
            exposure.host
        )
    };
    let mut names = vec![exposure.host.clone()];
    names.extend(exposure.nodes());
    names.dedup();
    let authority_key = Key::new(held, "authority")?;
    let mut authority = CertificateParams::default();
    let name = format!("ferrostack {} {}", cloud.name, held.uid());
    authority.distinguished_name.push(DnType::CommonName, name);
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let root = authority.self_signed(&authority_key);
    let root = root.map_err(|error| failed(&error))?;
    // Another key for other names: serial numbers are made from it, and two certificates must not have the same.
    let key = Key::new(held, &names.join(","))?;
    let mut leaf = CertificateParams::new(names).map_err(|error| failed(&error))?;
    if exposure.host.parse::<IpAddr>().is_err() {
        let host = exposure.host.as_str();
        leaf.distinguished_name.push(DnType::CommonName, host);
    }
    leaf.is_ca = IsCa::ExplicitNoCa;
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.use_authority_key_identifier_extension = true;
    let issuer = Issuer::from_params(&authority, &authority_key);
    let certificate = leaf.signed_by(&key, &issuer);
    let certificate = certificate.map_err(|error| failed(&error))?;
    Ok(Issued {
        authority: root.pem(),
        certificate: certificate.pem(),
        key: key.pem()?,
    })
}

/// Certificate and key of the authority for the libvirt of compute nodes. Each node issues its own certificate.
///
/// # Errors
/// The secret of the cloud gives no key.
pub(crate) fn of_migrations(
    cloud: &Cloud,
    held: &Credentials,
) -> Result<(String, Password), String> {
    // No host has this name.
    let key = Key::new(held, "libvirt/migrations")?;
    let mut authority = CertificateParams::default();
    let name = format!("ferrostack {} {} migrations", cloud.name, held.uid());
    authority.distinguished_name.push(DnType::CommonName, name);
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let root = authority.self_signed(&key);
    let root = root.map_err(|error| format!("the authority of migrations: {error}"))?;
    Ok((root.pem(), key.pem()?))
}

/// Key made from a secret of the cloud.
struct Key(EcdsaKey);

impl Key {
    /// [`Key`] for a use.
    fn new(held: &Credentials, r#use: &str) -> Result<Self, String> {
        let seed = held.password("edge-authority");
        // One hash in 2^32 is no key.
        let key = (0..8_u8).find_map(|attempt| {
            let mut hash = Sha256::new();
            for part in [seed.expose(), held.uid(), r#use] {
                hash.update((part.len() as u64).to_be_bytes());
                hash.update(part);
            }
            hash.update([attempt]);
            EcdsaKey::from_slice(&hash.finalize())
        });
        let key = key.ok_or("edge-authority gives no key")?;
        Ok(Self(key))
    }

    fn pem(&self) -> Result<Password, String> {
        let pem = self.0.pem();
        let pem = pem.map_err(|error| format!("the key of the edge: {error}"))?;
        Ok(Password::new(pem.as_str()))
    }
}

impl PublicKeyData for Key {
    fn der_bytes(&self) -> &[u8] {
        self.0.point()
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

impl rcgen::SigningKey for Key {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        Ok(self.0.sign(message))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::desired::tests::{cloud, held};

    fn at(host: &str) -> Issued {
        let addresses = json!(["192.0.2.7", "192.0.2.8"]);
        let exposure = json!({"mode": "Edge", "host": host, "addresses": addresses});
        let cloud = cloud(&json!({"release": "zed", "exposure": exposure}));
        let exposure = cloud.parameters.exposure.clone().unwrap();
        issued(&cloud, &held(), &exposure).unwrap()
    }

    #[test]
    fn the_same_names_have_the_same_bytes_and_other_names_another_key() {
        let (one, same, other) = (at("cloud.test"), at("cloud.test"), at("other.test"));
        assert_eq!(one.certificate, same.certificate);
        assert_eq!(one.authority, other.authority);
        assert_ne!(one.certificate, other.certificate);
        assert_ne!(one.key, other.key);
        assert!(!format!("{one:?}").contains("PRIVATE"));
    }

    #[test]
    fn migrations_have_an_authority_of_their_own_with_the_same_bytes_each_time() {
        use x509_parser::pem::parse_x509_pem;

        let cloud = cloud(&json!({"release": "2026.1"}));
        let (authority, key) = of_migrations(&cloud, &held()).unwrap();
        assert_eq!(
            of_migrations(&cloud, &held()).unwrap(),
            (authority.clone(), key.clone())
        );
        let edge = at("cloud.test");
        assert!(authority != edge.authority && key != edge.key);
        let (_, root) = parse_x509_pem(authority.as_bytes()).unwrap();
        let root = root.parse_x509().unwrap();
        assert!(root.is_ca());
        root.verify_signature(None).unwrap();
    }

    #[test]
    fn the_certificate_is_for_its_names_and_is_signed_by_the_authority() {
        use x509_parser::extensions::GeneralName;
        use x509_parser::pem::parse_x509_pem;

        let issued = at("cloud.test");
        let (_, root) = parse_x509_pem(issued.authority.as_bytes()).unwrap();
        let root = root.parse_x509().unwrap();
        assert!(root.is_ca());
        root.verify_signature(None).unwrap();
        let (_, leaf) = parse_x509_pem(issued.certificate.as_bytes()).unwrap();
        let leaf = leaf.parse_x509().unwrap();
        assert!(!leaf.is_ca());
        leaf.verify_signature(Some(root.public_key())).unwrap();
        assert_eq!(leaf.issuer(), root.subject());
        assert_ne!(leaf.raw_serial(), root.raw_serial());
        let names = leaf.subject_alternative_name().unwrap().unwrap();
        let names: Vec<String> = names
            .value
            .general_names
            .iter()
            .map(|name| match name {
                GeneralName::DNSName(name) => (*name).to_owned(),
                GeneralName::IPAddress(bytes) => format!("{bytes:?}"),
                other => panic!("{other}"),
            })
            .collect();
        assert_eq!(names, ["cloud.test", "[192, 0, 2, 7]", "[192, 0, 2, 8]"]);
    }
}
