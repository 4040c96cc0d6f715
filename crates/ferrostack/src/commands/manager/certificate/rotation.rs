//! Next step with the certificate in the Secret, by the content and the time: no other state is kept, so any manager
//! continues the work of another one.
//!
//! A new certificate of a new authority is prepared, while the old one is served; API servers get both authorities;
//! then the new certificate is served, and the old authority stays until the expiry, for managers that are late.

use std::net::IpAddr;

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_parser::extensions::GeneralName;

use super::Stored;

/// Remaining validity of a certificate at the replacement, in seconds.
const RENEWAL: i64 = 90 * 86_400;

/// A step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::commands::manager) enum Step {
    /// Issues the next certificate, for the names, beside the authorities.
    Prepare {
        names: Vec<String>,
        authorities: String,
    },
    /// Serves the next certificate.
    Switch,
    /// Keeps these authorities only, since others have expired.
    Forget { authorities: String },
}

impl Step {
    /// Step as logged afterwards.
    pub(in crate::commands::manager) fn text(&self) -> &'static str {
        match self {
            Self::Prepare { .. } => "another one is prepared, of another authority",
            Self::Switch => "the other one is served",
            Self::Forget { .. } => "an authority has expired, and is not accepted any more",
        }
    }
}

/// Next [`Step`], if any. `names` are the host names of the webhooks. `is_registered`: API servers have had all
/// authorities for a while.
pub(super) fn step(
    stored: &Stored,
    names: &[String],
    is_registered: bool,
    now: Timestamp,
) -> Option<Step> {
    let authorities = certificates(&stored.authorities);
    let served = certificates(&stored.served.certificate).into_iter().next();
    let now = now.as_second();
    let is_known = |leaf: &Certificate| authorities.iter().any(|it| it.name == leaf.issuer);
    let kept: String = authorities
        .iter()
        .filter(|it| it.until > now || served.as_ref().is_some_and(|leaf| leaf.issuer == it.name))
        .map(|it| it.pem.as_str())
        .collect();
    let prepare = || {
        let mut all = names.to_vec();
        let others = served.iter().flat_map(|it| &it.names);
        for name in others {
            if !all.contains(name) {
                all.push(name.clone());
            }
        }
        Some(Step::Prepare {
            names: all,
            authorities: kept.clone(),
        })
    };
    if let Some(next) = &stored.next {
        let next = certificates(&next.certificate).into_iter().next();
        if !next.is_some_and(|it| it.until > now && is_known(&it)) {
            return prepare();
        }
        let is_over = served.is_none_or(|it| it.until <= now);
        return (is_registered || is_over).then_some(Step::Switch);
    }
    let is_good = served.as_ref().is_some_and(|leaf| {
        let has_names = names.iter().all(|name| leaf.names.contains(name));
        leaf.until - now > RENEWAL && has_names && is_known(leaf)
    });
    if !is_good {
        return prepare();
    }
    let is_less = certificates(&kept).len() < authorities.len();
    is_less.then_some(Step::Forget { authorities: kept })
}

/// Relevant parts of a certificate.
struct Certificate {
    name: String,
    issuer: String,
    /// End of the validity, in seconds since 1970.
    until: i64,
    /// Hosts of the certificate.
    names: Vec<String>,
    pem: String,
}

/// Readable [`Certificate`]s of a text in PEM.
fn certificates(text: &str) -> Vec<Certificate> {
    const END: &str = "-----END CERTIFICATE-----";
    let blocks = text.split_inclusive(END);
    blocks.filter_map(certificate).collect()
}

fn certificate(pem: &str) -> Option<Certificate> {
    let der = CertificateDer::from_pem_slice(pem.as_bytes()).ok()?;
    let (_, parsed) = x509_parser::parse_x509_certificate(&der).ok()?;
    let alternatives = parsed.subject_alternative_name().ok().flatten();
    let names = alternatives.iter().flat_map(|it| &it.value.general_names);
    let names = names.filter_map(|it| match it {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => address(bytes).map(|it| it.to_string()),
        _ => None,
    });
    Some(Certificate {
        name: parsed.subject().to_string(),
        issuer: parsed.issuer().to_string(),
        until: parsed.validity().not_after.timestamp(),
        names: names.collect(),
        pem: format!("{}\n", pem.trim()),
    })
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}

#[cfg(test)]
mod tests;
