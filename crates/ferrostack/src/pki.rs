//! Certificates of the management API: a certificate authority, stored in the data directory.

use anyhow::Context;
use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::tz::TimeZone;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use secrecy::SecretString;

use crate::data_dir::DataDir;

/// Validity of certificates in days. The authority is valid as long as a data directory may be used; other certificates
/// are issued at every start.
const AUTHORITY_DAYS: i64 = 3650;
const LEAF_DAYS: i64 = 365;

/// Certificate with its key, both PEM.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: SecretString,
}

/// The authority of the management API.
pub(super) struct Authority {
    pub(super) certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Reads the authority from the data directory, or creates it.
    pub(super) fn open(data: &DataDir) -> anyhow::Result<Self> {
        // The key is written before the certificate, which is useless without it.
        if let (Some(certificate), Some(key)) = (data.read("pki/ca.crt")?, data.read("pki/ca.key")?)
        {
            let key = KeyPair::from_pem(&key).context("pki/ca.key in the data directory")?;
            let issuer = Issuer::from_ca_cert_pem(&certificate, key)
                .context("pki/ca.crt in the data directory")?;
            return Ok(Self {
                certificate,
                issuer,
            });
        }
        let params = authority("ferrostack", AUTHORITY_DAYS)?;
        let key = KeyPair::generate()?;
        let certificate = params.self_signed(&key)?.pem();
        data.write("pki/ca.key", &key.serialize_pem())?;
        data.write("pki/ca.crt", &certificate)?;
        Ok(Self {
            certificate,
            issuer: Issuer::new(params, key),
        })
    }

    /// The server certificate for `host` (an IP address) and `localhost`.
    pub(super) fn server(&self, host: &str) -> anyhow::Result<Identity> {
        let mut params = CertificateParams::new(vec![
            host.to_owned(),
            "localhost".to_owned(),
            // The first address of the range for Services, at which pods find the server.
            "10.96.0.1".to_owned(),
            "kubernetes".to_owned(),
            "kubernetes.default".to_owned(),
            "kubernetes.default.svc".to_owned(),
            "kubernetes.default.svc.cluster.local".to_owned(),
        ])?;
        (params.not_before, params.not_after) = validity(LEAF_DAYS);
        params
            .distinguished_name
            .push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(&params)
    }

    /// The client certificate of the administrator: a member of `system:masters`.
    pub(super) fn admin(&self) -> anyhow::Result<Identity> {
        let mut params = params("kubernetes-admin", Some("system:masters"), LEAF_DAYS)?;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> anyhow::Result<Identity> {
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Identity {
            certificate,
            key: key.serialize_pem().into(),
        })
    }
}

/// Server certificate for `names` (host names and IP addresses), as an [`Identity`], and the PEM of a new authority for
/// this certificate with a discarded key. Both are valid as long as an authority.
pub(crate) fn self_issued(name: &str, names: Vec<String>) -> anyhow::Result<(String, Identity)> {
    self_issued_for(name, names, AUTHORITY_DAYS)
}

/// As [`self_issued`], valid for this many days.
pub(crate) fn self_issued_for(
    name: &str,
    names: Vec<String>,
    days: i64,
) -> anyhow::Result<(String, Identity)> {
    let params = authority(&format!("{name}-ca"), days)?;
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?.pem();
    let issued = Authority {
        certificate: certificate.clone(),
        issuer: Issuer::new(params, key),
    };
    let mut params = CertificateParams::new(names)?;
    (params.not_before, params.not_after) = validity(days);
    params.distinguished_name.push(DnType::CommonName, name);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok((certificate, issued.sign(&params)?))
}

fn authority(name: &str, days: i64) -> anyhow::Result<CertificateParams> {
    let mut params = params(name, None, days)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    Ok(params)
}

fn params(name: &str, organization: Option<&str>, days: i64) -> anyhow::Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    (params.not_before, params.not_after) = validity(days);
    params.distinguished_name.push(DnType::CommonName, name);
    if let Some(organization) = organization {
        params
            .distinguished_name
            .push(DnType::OrganizationName, organization);
    }
    Ok(params)
}

/// Validity since yesterday, for slow clocks, for `days`.
fn validity(days: i64) -> (time::OffsetDateTime, time::OffsetDateTime) {
    let day = |offset: i64| {
        let seconds = Timestamp::now().as_second() + offset * 86_400;
        let date = Timestamp::from_second(seconds)
            .unwrap_or_default()
            .to_zoned(TimeZone::UTC)
            .date();
        let month = u8::try_from(date.month()).unwrap_or(1);
        let day = u8::try_from(date.day()).unwrap_or(1);
        date_time_ymd(i32::from(date.year()), month, day)
    };
    (day(-1), day(days))
}
