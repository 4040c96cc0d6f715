//! Certificate given by the user, checked before a program serves it.

use std::net::IpAddr;

use rcgen::{KeyPair, PublicKeyData as _};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use x509_parser::asn1_rs::{Any, BitString, Class, FromDer as _, Sequence, Tag, ToDer as _};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::pem::Pem;
use x509_parser::public_key::PublicKey;
use x509_parser::time::ASN1Time;

use crate::object::Password;

/// Supported keys of certificates.
const KINDS: &str = "RSA with at least 2048 bits, P-256, P-384 or Ed25519";
/// Minimum bits of an RSA key that OpenSSL accepts in Debian.
const SHORTEST: usize = 2048;
/// Maximum number of certificates in a file.
const LONGEST: usize = 16;

/// Certificate with its chain of issuers, and its key, as PEM.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pair {
    /// Certificate, followed by its issuers.
    pub(crate) certificate: String,
    /// Key.
    pub(crate) key: Password,
}

impl Pair {
    /// Reason why clients of this host could never connect: the key of the Secret, and the problem. `authority` has the
    /// certificates given to clients, if any.
    pub(crate) fn wrong(&self, host: &str, authority: Option<&str>) -> Option<String> {
        self.judged(host, authority).err()
    }

    fn judged(&self, host: &str, authority: Option<&str>) -> Result<(), String> {
        let of_certificate = |why: String| format!("tls.crt {why}");
        let files = certificates(&self.certificate).map_err(of_certificate)?;
        let chain = parsed(&files).map_err(of_certificate)?;
        let [leaf, ..] = chain.as_slice() else {
            return Err("tls.crt has no certificate in PEM form".to_owned());
        };
        self.fits(leaf)?;
        serves(leaf).map_err(of_certificate)?;
        names(leaf, host).map_err(of_certificate)?;
        issued(&chain).map_err(of_certificate)?;
        let Some(authority) = authority else {
            return Ok(());
        };
        let of_authority = |why: String| format!("ca.crt {why}");
        let files = certificates(authority).map_err(of_authority)?;
        let authorities = parsed(&files).map_err(of_authority)?;
        let last = chain.last().unwrap_or(leaf);
        let is_trusted = authorities
            .iter()
            .any(|it| it.as_raw() == last.as_raw() || is_issuer(it, last));
        match is_trusted {
            true => Ok(()),
            false => Err(format!(
                "ca.crt has not the authority that has issued tls.crt: {}",
                last.issuer()
            )),
        }
    }

    /// Compares the key with the certificate. A key of an unknown type cannot be compared, and is rejected, since the
    /// edge does not start with a wrong one.
    fn fits(&self, leaf: &X509Certificate<'_>) -> Result<(), String> {
        let key = PrivateKeyDer::from_pem_slice(self.key.expose().as_bytes()).map_err(|_| {
            "tls.key has no private key in PEM form (PKCS#8, PKCS#1 or SEC 1, not encrypted)"
                .to_owned()
        })?;
        let public = public(&key).ok_or_else(|| {
            format!("tls.key is of a kind that is not known here: it has to be {KINDS}")
        })?;
        if public != *leaf.public_key().subject_public_key.data {
            return Err("tls.key is not the key of the certificate in tls.crt".to_owned());
        }
        match leaf.public_key().parsed() {
            Ok(PublicKey::RSA(key)) if key.key_size() < SHORTEST => Err(format!(
                "tls.key is too short, and the edge would refuse it: it has to be {KINDS}"
            )),
            _ => Ok(()),
        }
    }

    /// Reason why clients cannot connect at this time, in seconds since 1970. `authority` has the certificates given to
    /// clients, if any: an issuer of the certificate among them has to be valid.
    pub(crate) fn ended(&self, authority: Option<&str>, now: i64) -> Option<String> {
        let now = ASN1Time::from_timestamp(now).ok()?;
        let files = certificates(&self.certificate).ok()?;
        let chain = parsed(&files).ok()?;
        let over = chain.iter().find_map(|it| out_of_time(it, now));
        if let Some(why) = over {
            return Some(format!("tls.crt: {why}"));
        }
        let last = chain.last()?;
        let files = certificates(authority?).ok()?;
        let authorities = parsed(&files).ok()?;
        let issuers = authorities
            .iter()
            .filter(|it| it.as_raw() == last.as_raw() || is_issuer(it, last));
        let issuers: Vec<Option<String>> = issuers.map(|it| out_of_time(it, now)).collect();
        let all = issuers.iter().cloned().collect::<Option<Vec<_>>>()?;
        Some(format!("ca.crt: {}", all.first()?))
    }
}

/// Reason why a certificate is not valid at a time.
fn out_of_time(certificate: &X509Certificate<'_>, now: ASN1Time) -> Option<String> {
    let validity = certificate.validity();
    let subject = certificate.subject();
    if now > validity.not_after {
        let end = validity.not_after;
        return Some(format!("the certificate {subject} expired on {end}"));
    }
    (now < validity.not_before).then(|| {
        let begin = validity.not_before;
        format!("the certificate {subject} is not valid before {begin}")
    })
}

/// Error if clients reject the certificate as a server's.
fn serves(leaf: &X509Certificate<'_>) -> Result<(), String> {
    let usage = leaf.extended_key_usage();
    let usage = usage.map_err(|_| "has uses (extendedKeyUsage) that cannot be read".to_owned())?;
    match usage.is_none_or(|it| it.value.any || it.value.server_auth) {
        true => Ok(()),
        false => Err("is not for servers: its extendedKeyUsage lacks serverAuth".to_owned()),
    }
}

/// Bits of the public key of a private one; none for an unknown type.
fn public(key: &PrivateKeyDer<'_>) -> Option<Vec<u8>> {
    match key {
        PrivateKeyDer::Pkcs8(der) => {
            let key = KeyPair::try_from(der).ok()?;
            Some(key.der_bytes().to_vec())
        }
        // RSAPrivateKey: version, modulus, public exponent. RSAPublicKey: modulus, public exponent.
        PrivateKeyDer::Pkcs1(der) => {
            let (_, all) = Sequence::from_der(der.secret_pkcs1_der()).ok()?;
            let (rest, _) = Any::from_der(&all.content).ok()?;
            let (end, _) = Any::from_der(rest).ok()?;
            let (end, _) = Any::from_der(end).ok()?;
            let numbers = rest.strip_suffix(end)?;
            Sequence::new(numbers.into()).to_der_vec().ok()
        }
        // ECPrivateKey: version, key, curve [0], public key [1].
        PrivateKeyDer::Sec1(der) => {
            let (_, all) = Sequence::from_der(der.secret_sec1_der()).ok()?;
            let mut rest = &*all.content;
            while !rest.is_empty() {
                let (after, part) = Any::from_der(rest).ok()?;
                if part.class() == Class::ContextSpecific && part.tag() == Tag(1) {
                    let (_, bits) = BitString::from_der(part.data).ok()?;
                    return Some(bits.data.to_vec());
                }
                rest = after;
            }
            None
        }
        _ => None,
    }
}

/// Certificates of a file.
fn certificates(text: &str) -> Result<Vec<Pem>, String> {
    let mut found = Vec::new();
    for block in Pem::iter_from_buffer(text.as_bytes()) {
        let block = block.map_err(|_| "is not in PEM form".to_owned())?;
        if block.label != "CERTIFICATE" {
            return Err(format!(
                "has something else than certificates: {}",
                block.label.escape_default().take(40).collect::<String>()
            ));
        }
        found.push(block);
        if found.len() > LONGEST {
            return Err(format!("has more than {LONGEST} certificates"));
        }
    }
    match found.is_empty() {
        true => Err("has no certificate in PEM form".to_owned()),
        false => Ok(found),
    }
}

fn parsed(files: &[Pem]) -> Result<Vec<X509Certificate<'_>>, String> {
    let certificates = files.iter().enumerate().map(|(index, file)| {
        let number = index + 1;
        file.parse_x509()
            .map_err(|_| format!("cannot be read: certificate {number} is damaged"))
    });
    certificates.collect()
}

/// Compares the names of the certificate with the host, as clients do: the common name does not count.
fn names(leaf: &X509Certificate<'_>, host: &str) -> Result<(), String> {
    let extension = leaf.subject_alternative_name();
    let extension =
        extension.map_err(|_| "has names (subjectAltName) that cannot be read".to_owned())?;
    let names = extension.map_or(&[][..], |it| &it.value.general_names);
    let address: Option<IpAddr> = host.parse().ok();
    let is_host = |name: &GeneralName<'_>| match (name, address) {
        (GeneralName::IPAddress(bytes), Some(IpAddr::V4(it))) => *bytes == it.octets(),
        (GeneralName::IPAddress(bytes), Some(IpAddr::V6(it))) => *bytes == it.octets(),
        (GeneralName::DNSName(name), None) => is_name(name, host),
        _ => false,
    };
    if names.iter().any(is_host) {
        return Ok(());
    }
    let known: Vec<String> = names.iter().filter_map(text).take(10).collect();
    let known = match known.is_empty() {
        true => "it has no subjectAltName".to_owned(),
        false => format!("it is for {}", known.join(", ")),
    };
    Err(format!(
        "is not for exposure.host, which is {host}: {known}"
    ))
}

/// A wildcard stands for one label.
fn is_name(pattern: &str, host: &str) -> bool {
    let pattern = pattern.to_ascii_lowercase();
    match pattern.strip_prefix("*.") {
        Some(rest) => host.split_once('.').is_some_and(|(_, it)| it == rest),
        None => pattern == host,
    }
}

fn text(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some(name.escape_default().collect()),
        GeneralName::IPAddress(bytes) => {
            let v4 = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
            let v6 = || <[u8; 16]>::try_from(*bytes).map(IpAddr::from);
            v4.or_else(|_| v6()).ok().map(|it| it.to_string())
        }
        _ => None,
    }
}

/// Error unless each certificate is issued by the next one.
fn issued(chain: &[X509Certificate<'_>]) -> Result<(), String> {
    for (index, pair) in chain.windows(2).enumerate() {
        let [certificate, issuer] = pair else {
            continue;
        };
        if !is_issuer(issuer, certificate) {
            let (number, next) = (index + 1, index + 2);
            return Err(format!(
                "is no chain: certificate {next} ({}) has not issued certificate {number}, whose issuer is {}",
                issuer.subject(),
                certificate.issuer()
            ));
        }
    }
    Ok(())
}

/// True for an authority (`CA:TRUE`) that has signed the certificate. Signatures of unknown types are left to clients.
fn is_issuer(issuer: &X509Certificate<'_>, certificate: &X509Certificate<'_>) -> bool {
    use x509_parser::error::X509Error;

    issuer.subject().as_raw() == certificate.issuer().as_raw()
        && issuer.is_ca()
        && matches!(
            certificate.verify_signature(Some(issuer.public_key())),
            Ok(()) | Err(X509Error::SignatureUnsupportedAlgorithm)
        )
}

#[cfg(test)]
pub(crate) mod tests;
