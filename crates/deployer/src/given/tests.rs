use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, PKCS_ECDSA_P256_SHA256,
    PKCS_ECDSA_P384_SHA384, PKCS_ED25519, PKCS_RSA_SHA256, PublicKeyData, SignatureAlgorithm,
};

use super::*;

/// An authority, and what it issues.
pub(crate) struct Authority {
    params: CertificateParams,
    key: KeyPair,
    pub(crate) pem: String,
}

impl Authority {
    pub(crate) fn new(name: &str, above: Option<&Self>) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = match above {
            None => params.self_signed(&key),
            Some(above) => {
                let issuer = Issuer::from_params(&above.params, &above.key);
                params.signed_by(&key, &issuer)
            }
        };
        let pem = certificate.unwrap().pem();
        Self { params, key, pem }
    }

    pub(crate) fn issue(&self, names: &[&str], key: &KeyPair) -> Pair {
        let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        (params.not_before, params.not_after) = (
            rcgen::date_time_ymd(2026, 1, 1),
            rcgen::date_time_ymd(2027, 1, 1),
        );
        let issuer = Issuer::from_params(&self.params, &self.key);
        Pair {
            certificate: params.signed_by(key, &issuer).unwrap().pem(),
            key: Password::new(key.serialize_pem()),
        }
    }
}

#[test]
fn a_certificate_for_the_host_with_its_key_and_chain_is_served() {
    let root = Authority::new("root", None);
    let middle = Authority::new("middle", Some(&root));
    for (names, host) in [
        (&["cloud.test"][..], "cloud.test"),
        (&["other.test", "CLOUD.test"], "cloud.test"),
        (&["*.test"], "cloud.test"),
        (&["192.0.2.7"], "192.0.2.7"),
    ] {
        let key = KeyPair::generate().unwrap();
        let pair = root.issue(names, &key);
        assert_eq!(pair.wrong(host, None), None, "{names:?}");
        assert_eq!(pair.wrong(host, Some(&root.pem)), None, "{names:?}");
        let mut pair = middle.issue(names, &key);
        pair.certificate += &middle.pem;
        assert_eq!(pair.wrong(host, Some(&root.pem)), None, "{names:?}");
        // An authority may be the end of the chain itself.
        pair.certificate += &root.pem;
        assert_eq!(pair.wrong(host, Some(&root.pem)), None, "{names:?}");
    }
    for kind in [&PKCS_ED25519, &PKCS_ECDSA_P384_SHA384] {
        let key = KeyPair::generate_for(kind).unwrap();
        let pair = root.issue(&["cloud.test"], &key);
        assert_eq!(pair.wrong("cloud.test", None), None);
    }
}

#[test]
fn what_no_client_could_connect_with_is_named() {
    let root = Authority::new("root", None);
    let other = Authority::new("other", None);
    let (key, another) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let good = root.issue(&["cloud.test", "192.0.2.7"], &key);
    let with = |certificate: &str, key: &str| Pair {
        certificate: certificate.to_owned(),
        key: Password::new(key),
    };
    let (certificate, private) = (good.certificate.as_str(), good.key.expose());
    let half = &certificate[..certificate.len() / 2];
    let damaged = certificate.replacen("MII", "AAA", 1);
    let backwards = format!("{}{certificate}", root.pem);
    let strange = format!("{certificate}{}", other.pem);
    let doubled = certificate.repeat(17);
    for (pair, why) in [
        (
            with("garbage", "garbage"),
            "tls.crt has no certificate in PEM form",
        ),
        (with("", private), "tls.crt has no certificate in PEM form"),
        (with(half, private), "tls.crt is not in PEM form"),
        (
            with(&damaged, private),
            "tls.crt cannot be read: certificate 1 is damaged",
        ),
        (
            with(private, private),
            "tls.crt has something else than certificates: PRIVATE KEY",
        ),
        (
            with(&doubled, private),
            "tls.crt has more than 16 certificates",
        ),
        (
            with(certificate, "garbage"),
            "tls.key has no private key in PEM form (PKCS#8, PKCS#1 or SEC 1, not encrypted)",
        ),
        (
            with(certificate, certificate),
            "tls.key has no private key in PEM form",
        ),
        (
            with(certificate, &another.serialize_pem()),
            "tls.key is not the key of the certificate in tls.crt",
        ),
        (
            with(&backwards, private),
            "tls.key is not the key of the certificate in tls.crt",
        ),
        (
            with(&strange, private),
            "tls.crt is no chain: certificate 2 (CN=other) has not issued certificate 1, whose issuer is CN=root",
        ),
    ] {
        let found = pair.wrong("cloud.test", None).unwrap_or_default();
        assert!(found.starts_with(why), "{found}");
    }
    assert_eq!(
        good.wrong("other.test", None).unwrap(),
        "tls.crt is not for exposure.host, which is other.test: it is for cloud.test, 192.0.2.7"
    );
    assert!(good.wrong("192.0.2.8", None).is_some());
    let wild = root.issue(&["*.test"], &key);
    assert!(wild.wrong("a.cloud.test", None).is_some());
    assert!(wild.wrong("test", None).is_some());
    let nameless = root.issue(&[], &key).wrong("cloud.test", None).unwrap();
    assert!(nameless.ends_with("it has no subjectAltName"), "{nameless}");
    assert_eq!(
        good.wrong("cloud.test", Some(&other.pem)).unwrap(),
        "ca.crt has not the authority that has issued tls.crt: CN=root"
    );
    let found = good.wrong("cloud.test", Some("garbage")).unwrap();
    assert_eq!(found, "ca.crt has no certificate in PEM form");
}

/// The forms of keys that `openssl` writes: `genrsa -traditional`, `ecparam -genkey`.
#[test]
fn keys_of_older_forms_are_compared_too() {
    let root = Authority::new("root", None);
    for (right, wrong) in [RSA, EC] {
        let from = |pem: &str| Pair {
            certificate: String::new(),
            key: Password::new(pem),
        };
        let file = PrivateKeyDer::from_pem_slice(right.as_bytes()).unwrap();
        let bits = public(&file).unwrap();
        let key = Public(&bits, right.contains("RSA"));
        let mut params = CertificateParams::new(vec!["cloud.test".to_owned()]).unwrap();
        params.is_ca = IsCa::ExplicitNoCa;
        let issuer = Issuer::from_params(&root.params, &root.key);
        let certificate = params.signed_by(&key, &issuer).unwrap().pem();
        let with = |key: &str| Pair {
            certificate: certificate.clone(),
            ..from(key)
        };
        assert_eq!(with(right).wrong("cloud.test", None), None);
        assert_eq!(
            with(wrong).wrong("cloud.test", None).unwrap(),
            "tls.key is not the key of the certificate in tls.crt"
        );
    }
}

/// A public key, for which an authority issues a certificate.
struct Public<'a>(&'a [u8], bool);

impl PublicKeyData for Public<'_> {
    fn der_bytes(&self) -> &[u8] {
        self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        match self.1 {
            true => &PKCS_RSA_SHA256,
            false => &PKCS_ECDSA_P256_SHA256,
        }
    }
}

#[test]
fn a_certificate_has_its_time() {
    let root = Authority::new("root", None);
    let pair = root.issue(&["cloud.test"], &KeyPair::generate().unwrap());
    let day = 86_400;
    let first = 1_767_225_600; // 1 January 2026
    assert_eq!(pair.ended(None, first + 10 * day), None);
    let early = pair.ended(None, first - day).unwrap();
    assert!(early.contains("is not valid before Jan  1"), "{early}");
    let late = pair.ended(None, first + 366 * day).unwrap();
    assert!(late.contains("expired on Jan  1"), "{late}");
}

// Keys of nobody, made for these tests.
const RSA: (&str, &str) = (
    "-----BEGIN RSA PRIVATE KEY-----
MIIEowIBAAKCAQEAoxVAuHAsiG1Qtk0WnRQUa8C3Ux97IbLqIEyO6+jxXZ9DdGSU
VDgsiHbl2OuxRbkiSTo2HewPhcHYT2HMo4pSccjZZf93SdlXZeHnrMm10Ua7yXsb
9NwAakbM7q3ZA2gJ60mJJrs8+PGIOYWiqeLbFrsR2AiYUbG8WiIzFu4HqYDcHBud
diHrT0saUJF1qv3ORY8I8UnaqAAFw+DuVVbW02x48eobt80KwZO2I9nZ/oWgxp1R
QLM5utw8f6qZynXixv5tVaS/va6EaRjbhxVwzXDAw6KHhl/SVsAmTxUUw/vxZgNB
5LI+aTOA7j4rJTJDBlPjPcpmduFInqcuZU8T2wIDAQABAoIBABHzPWfvpN8xVRBz
xLjuZF8F28fQ778iT8XVV2fdAHAjHwwZJABvHGu61oq9SopXmdAAkcNSX9UDpJj8
NUeM6o0uo8snxswAma+ToWnx28rYo8PGAqo9auhHubfNt9S5p1nYAroaItht0WYv
cNuNJjtGxOyH6agYTZiIKiJsebhs0wKeBrwzyDmQyWtnz6KLS+MBkz2YlxJRNRZw
EvrsMbI00sGJ/LMbQYeViEtcnLbHB3ERyeKl8uHFy667RXC/Vt0vMBzzpfQlDi26
slv8PklG5lTBCFGgFwGKYUMm/GmSA760HZaNE+8pAAIRRGu8sUCDZ4qfHuS+e0AA
cwRJ95UCgYEA11S8d6hjOvasLno1CjU90WpbmZbZJIQo1Nsej2f4+LIgT4Zhw2P+
8kbTyKPaWu//OTn6v0GJGxFeOQU73xFh5ky8uP9r7aMmZiIUsF3hN6QqweZmeIpV
nr79LuEfWmIHMrUF03VePSVYjWTfvmuvD/kGaOyYKNfIBS0zaJOtwZ8CgYEAweJT
BAKR1VTFEoyNrVUsaLtr/uZ320hUxbWhsDcEl0MVFY0ULlctl3uLx+u++X9suGzh
xyBDkHetVvuhxjP3cvl7oTQJaSb4ZN9pGKEVDeY+7e40BIcEoAZd/VHO6yR93P3B
9Y2qVR39p1JQzB50/IiV/2ZptaHjliaiYwtjnEUCgYAFGJVJQ6vthk723p+IuU/Y
N+spDF/hNFt/BhyICk7jG9wV5blElYZAF5sFgZM2Wb2xjgS4KAXlpRiUwuHy2od1
mtVQj4LvYdAT1LSmo+IjnfgBFMHSEnwKQLzfMia6zd0bvxr/MSTkz5Bz8DI3YHcJ
KryTGR5UwR6TuMkhrXUMQwKBgA4MpXFb8k9gJiuy7a1Kx74LHsdI0hScyC/Pepj3
U6jWXpfCMl0tSgt5E2b4SU1xE2LF2RKB3wN/+Jqd/1oKd/rn4zKKP8hT35oHqmjz
e0AXmCXLpg9R7V7fNz5dCD531XsHFGAD1Pz4AGJ4j4xLBLUr/JqWREC6K3C8+fVt
ZNl1AoGBAJ3rB+aPnrgRlyx7iz7iTy2+Ayh98LFkJLTDH6vSJFnR5zjFzl05JwXT
t3lKftI0+gG0UehCtuHcNVeVst6/49V6rHCdUDXp9hEW0KwHnMo7CqH5wcNH8cn8
qNU4ME6qKDIdwjeFMpb73ocNFGRPe4pvrY+Yx1mina7eqYQKHKsq
-----END RSA PRIVATE KEY-----
",
    "-----BEGIN RSA PRIVATE KEY-----
MIIEpQIBAAKCAQEAnEJPavqllNbJX3zmVvRevcvHjl0m3Wts9gEKMpx5xxCEQVzU
P58YkCVbkRvZDOKSAZUNrir6sOON3Uo+AJIzitaR+yIWJt+KGPvHd4ZI+QcKGwTe
O5Tto68hzhjiaDKm3n2EoH+lh05ZLc/vyig94FMNmQ+40en3V7M/o0wGSJD2mBYE
s9VYpq93PhgCc9CeAx3pROGiV73EOztCxj3l0kQJKlcp419QKuob83Un/1R2Ehhd
R2bAaD0yrA5G1+rcXJQnqvb8FDrSxXLT6to3vNQmC2hkH2FhUie77saPcM3UriK1
WARBCAOOxuIny03tUFASfEdFB8Pm3tHvz+KIZQIDAQABAoIBACS4uqQ38jjHvzxH
BHSz6h3taWDOCGepqsonVWeueTnsakBYGfM3ptSdSucPpdMO3eQsTLI9HHv8hibW
nzqQITfEFDtx98W7697SML6omraXTmsqGjXjWnOIoUendnGpUajg043KYbKqGXAY
OVCHY3831W6+kJ8YPk3obJCqOaHMvR443W1puH+Z1nOzErB+d2WZDQunTKVxSpHZ
kobfSHz1XD7KS2Vr2UQtmrlETBDGsc4a7QogReyqddj5t/WyXOUGO+H2S2UKNORg
YW1Fy9aD+PDGJBnd/Ws1hD/iEPPzt3RWP0PJAH1kylyYP9zkm89avfSqCtsKpmQm
wUjMO4MCgYEA2pi4xZZ504CA3VEUqwI6p3f95Nc7QwVMEzpVRHpNp5v+GVeE6K38
rm9EiOFff/tHPHRJ/CpP68IKNvMxRqrr7JSZtOAKqMWZg8yXZbrD4jD5X8FwzoxM
zcIYpgk6cDfyUcNAnTBTKTAMcUKeQuc40mZI8so3XY8hPTrXjKisB1cCgYEAtv79
k9kIA41hhWn5mmL/Y2xXqiCRrnzKAKtTxhdRLvUgcWu9piHb5Ibu2mex0g0QjE4A
U0iRBlDoEZ0x/SKo+cfxZB7m0VPn5Nc+UQfeAE4EOL4E1XoL50ZgMSy1SdkpxsiD
rDq8Yg++ReBObLi5nZhUvgT0cdiRWiq6bYhXhKMCgYEAn9KBZZV7RPPzQ90AK3fZ
wo+shiAHKB07XeOMbCCvnhgjVAv1FNoAoNihVyLQXBYwIzcy0Ldu74RTS5HLOUvG
apbLOr+Di5nNf9uZ5bsDdOExsp0QCTPzA40h0GN24o1FEhqbp1Gpu7dxoW1/oJLF
rK80Lq9Cg5keSFI5PpIkFMkCgYEAi61QElS7GDMG99Vu7peXxeTBeRrI971KVn5v
QCk2DziNHeWV6UO42tLfZ5d0lBbixaUX/HnMMFz69c7dhBC7l4Q0zS4FEkwQGYzt
hN4TZnomIMVxXRx+D3aZH4+3hHmcuJz+XCys89B+dEmEstnA2/iU3kFb77XVJFSu
3cIOwy8CgYEAnIq3XZLpFdu91lhPVW+QBmqJMFAY/jqtZCX11fLkynvVQxBhurDr
T+K1ps1CHKQi+9GXI/58nhU6Pv79YSJwMrJF6O/LKcW/0U1Iwe8c/UmOFCDtl0wZ
1iPZP2Z3WOjFCQq5W7JXvUvhQci6YlT47MUnoDraWgmxXQKPlgmUJxw=
-----END RSA PRIVATE KEY-----
",
);
const EC: (&str, &str) = (
    "-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIN65ZehCHN66GEbYBIMX2LjSREEzgs7woFQXFQIqCIXAoAoGCCqGSM49
AwEHoUQDQgAEYkXYws1slhn76/HUptTcjH9Y45ZLCqhZmWJ09qA9MUHt68KTTlu7
XQw+J4uVSbmR1Yom3YYf3isQ1Inep9NcwA==
-----END EC PRIVATE KEY-----
",
    "-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIPQIbKQedpXfOZQ79TrWB4yv/Z7TBC1teqZMUqCKOTzGoAoGCCqGSM49
AwEHoUQDQgAE+IO9iL+hlcVHAf1dfupUnKVvtllNttYoQXpWsP79LP+y8vPUpB0R
yY7ChUTozVo6gTFTX8VKAoqHuGmvEJidGw==
-----END EC PRIVATE KEY-----
",
);

#[test]
fn a_certificate_that_no_client_takes_for_a_servers_is_named() {
    use rcgen::ExtendedKeyUsagePurpose;

    let root = Authority::new("root", None);
    let key = KeyPair::generate().unwrap();
    let with = |change: &dyn Fn(&mut CertificateParams), issuer: &Authority| {
        let mut params = CertificateParams::new(vec!["cloud.test".to_owned()]).unwrap();
        change(&mut params);
        let issuer = Issuer::from_params(&issuer.params, &issuer.key);
        Pair {
            certificate: params.signed_by(&key, &issuer).unwrap().pem(),
            key: Password::new(key.serialize_pem()),
        }
    };
    let for_clients = with(
        &|it| it.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth],
        &root,
    );
    assert_eq!(
        for_clients.wrong("cloud.test", None).unwrap(),
        "tls.crt is not for servers: its extendedKeyUsage lacks serverAuth"
    );
    // Whoever has a certificate of the authority is none.
    let mut no_authority = Authority::new("leaf", Some(&root));
    no_authority.params.is_ca = IsCa::ExplicitNoCa;
    let issuer = Issuer::from_params(&root.params, &root.key);
    no_authority.pem = no_authority
        .params
        .signed_by(&no_authority.key, &issuer)
        .unwrap()
        .pem();
    let mut issued = with(&|_| (), &no_authority);
    issued.certificate += &no_authority.pem;
    let why = issued.wrong("cloud.test", None).unwrap();
    assert!(why.contains("is no chain: certificate 2"), "{why}");
}

#[test]
fn an_authority_that_is_over_is_named() {
    let mut root = Authority::new("root", None);
    let key = KeyPair::generate().unwrap();
    let pair = root.issue(&["cloud.test"], &key);
    let now = rcgen::date_time_ymd(2026, 6, 1).unix_timestamp();
    assert_eq!(pair.ended(None, now), None);
    assert_eq!(pair.ended(Some(&root.pem), now), None);
    let good = root.pem.clone();
    root.params.not_after = rcgen::date_time_ymd(2026, 2, 1);
    root.pem = root.params.self_signed(&root.key).unwrap().pem();
    let why = pair.ended(Some(&root.pem), now).unwrap();
    assert!(
        why.starts_with("ca.crt: the certificate CN=root expired on "),
        "{why}"
    );
    // One beside it is good.
    assert_eq!(pair.ended(Some(&format!("{}{good}", root.pem)), now), None);
}

/// A key that nobody uses.
const P_521: &str = "-----BEGIN PRIVATE KEY-----
MIHuAgEAMBAGByqGSM49AgEGBSuBBAAjBIHWMIHTAgEBBEIA6kQow8EQpfW9ciCX
miSl5JX7Lz3Onxbqm9PzKQOJ97ijdy45XGE/HxyZ9JzXIlonVLnSdmfFsTE0mbts
OI1sn9GhgYkDgYYABABghSFBz89cgGRwCYbG/Ar+pQbYbEMgvvZ04cB0XeaLt5oA
DHd1JVXYv5V0zU8OjWjj3YM0EmXh0VuOyeMlElsY7gAfiU7SqbOykdITi2TqP17P
/uYb69Uopsxe/lvJvHld/mjCr5Mkt7J9VyK1OWzU72OtWcpnELmblHMUUtGToTVl
7w==
-----END PRIVATE KEY-----
";

#[test]
fn a_key_that_cannot_be_compared_with_the_certificate_is_refused() {
    let pair = Pair {
        certificate: Authority::new("cloud.test", None).pem,
        key: Password::new(P_521),
    };
    assert_eq!(
        pair.wrong("cloud.test", None).unwrap(),
        "tls.key is of a kind that is not known here: it has to be RSA with at least 2048 bits, P-256, P-384 or Ed25519"
    );
}
