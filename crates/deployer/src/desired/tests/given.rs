//! A certificate that the user gives.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::KeyPair;

use super::*;
use crate::given::tests::Authority;

#[test]
fn a_certificate_that_is_given_is_mounted_and_what_its_secret_lacks_is_named() {
    let spec = json!({"release": "2025.1", "exposure":
        {"mode": "Edge", "host": "192.0.2.7", "tls": {"secretName": "mine"}}});
    let graph = |secrets: &[Json]| {
        desired(
            &cloud(&spec),
            &Credentials::complete("cloud", secrets, || 7),
        )
    };
    let secret = |data: Json| json!({"kind": "Secret", "metadata": {"name": "mine"}, "data": data});
    let problems = [
        (
            vec![],
            "exposure.tls.secretName: there is no Secret mine in the namespace",
        ),
        (
            vec![secret(json!({"tls.crt": "eA=="}))],
            "exposure.tls.secretName: Secret mine has no key tls.key",
        ),
    ];
    for (secrets, problem) in problems {
        assert_eq!(graph(&secrets).problems, [problem]);
    }
    let root = Authority::new("root", None);
    let pair = root.issue(&["192.0.2.7"], &KeyPair::generate().unwrap());
    let encoded = |text: &str| STANDARD.encode(text);
    let mut data = json!({"tls.crt": encoded(&pair.certificate), "tls.key": encoded(pair.key.expose()),
        "ca.crt": encoded(&root.pem)});
    let good = graph(&[secret(data.clone())]);
    assert_eq!(good.problems, Vec::<String>::new());
    let all = pods(&good);
    let (_, pod) = all.iter().find(|(name, _)| name == "edge").unwrap();
    let volumes: Vec<&Json> = items(pod, "/spec/volumes").collect();
    // A copy: what is good stays in use when what the user has is replaced by what is not.
    assert!(
        volumes
            .iter()
            .any(|it| it["secret"]["secretName"] == "edge-certificate"),
        "{volumes:?}"
    );
    let object = |name: &str| {
        let mut objects = good.objects().map(|(_, it)| it);
        objects.find(|it| it.reference().name == name).unwrap()
    };
    let copy = object("edge-certificate").exposed();
    let served = crate::object::decoded(&copy, "tls.crt").unwrap();
    assert_eq!(served.expose(), pair.certificate);
    let step = good.steps.iter().find(|it| it.name == "edge").unwrap();
    assert!(step.needs.iter().any(|it| it == "certificate"), "{step:?}");
    let authority = crate::object::decoded(&object("cloud-admin").exposed(), "ca.crt").unwrap();
    assert_eq!(authority.expose(), root.pem);
    // Another host, and garbage, are refused with the Secret and its key.
    data["tls.key"] = "eA==".into();
    let problems = graph(&[secret(data)]).problems;
    assert!(
        problems[0].starts_with("exposure.tls.secretName: Secret mine: tls.key has no private key"),
        "{problems:?}"
    );
    let held = |now| {
        let objects = [secret(
            json!({"tls.crt": encoded(&pair.certificate), "tls.key": encoded("x")}),
        )];
        ended(
            &cloud(&spec),
            &Credentials::complete("cloud", &objects, || 7),
            now,
        )
    };
    assert_eq!(held(1_780_000_000), None);
    let late = held(1_900_000_000).unwrap();
    assert!(
        late.starts_with("exposure.tls.secretName: Secret mine: tls.crt: the certificate "),
        "{late}"
    );
}
