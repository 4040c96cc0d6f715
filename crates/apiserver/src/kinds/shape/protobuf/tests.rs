use proptest::prelude::*;
use serde_json::json;

use super::{NUMBERS, STRUCTS, decode};

fn bytes(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    let mut out = vec![number << 3 | 2, length];
    out.extend_from_slice(content);
    out
}

fn envelope(api_version: &str, kind: &str, content: &[u8]) -> Vec<u8> {
    let meta = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
    let parts = [
        bytes(1, &meta),
        bytes(2, content),
        bytes(3, b""),
        bytes(4, b""),
    ];
    [b"k8s\0".to_vec(), parts.concat()].concat()
}

#[test]
fn every_type_has_numbers_for_its_fields() {
    assert!(NUMBERS.len() > 300);
    for (name, shape) in &*STRUCTS {
        let own = NUMBERS[name].values();
        let embedded = own
            .clone()
            .filter_map(|field| field.strip_prefix('@'))
            .flat_map(|name| NUMBERS[name].values());
        let known: Vec<&&str> = own.chain(embedded).collect();
        for field in shape.fields.keys() {
            let typed = matches!(*field, "apiVersion" | "kind");
            assert!(typed || known.contains(&field), "{name}.{field}");
        }
    }
}

#[test]
fn a_token_request_is_read_as_go_writes_it() {
    // 3600 is two bytes of seven bits; metadata is written though it is empty.
    let spec = [bytes(1, b"a"), bytes(1, b"b"), vec![4 << 3, 0x90, 0x1c]].concat();
    let meta = [bytes(1, b""), bytes(8, b""), vec![7 << 3, 0]].concat();
    let content = [bytes(1, &meta), bytes(2, &spec)].concat();
    let body = envelope("authentication.k8s.io/v1", "TokenRequest", &content);
    let object = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {},
        "spec": {"audiences": ["a", "b"], "expirationSeconds": 3600},
    });
    assert_eq!(decode(&body), Ok(Some(object)));
}

#[test]
fn zero_is_kept_where_it_means_something() {
    let body = envelope("v1", "DeleteOptions", &[1 << 3, 0]);
    let decoded = decode(&body).unwrap().unwrap();
    assert_eq!(decoded["gracePeriodSeconds"], 0);
}

#[test]
fn maps_bytes_and_embedded_types_are_read() {
    let data = bytes(2, &[bytes(1, b"k"), bytes(2, b"hi")].concat());
    let secret = decode(&envelope("v1", "Secret", &data)).unwrap().unwrap();
    assert_eq!(secret["data"], json!({"k": "aGk="}));
    // A volume is its name and, embedded, where it comes from: an empty directory is the second kind.
    let volume = [bytes(1, b"v"), bytes(2, &bytes(2, b""))].concat();
    let pod = envelope("v1", "Pod", &bytes(2, &bytes(1, &volume)));
    let pod = decode(&pod).unwrap().unwrap();
    assert_eq!(
        pod["spec"]["volumes"],
        json!([{"name": "v", "emptyDir": {}}])
    );
    let items = |key: &[u8]| {
        let items = bytes(2, &bytes(1, b"x"));
        bytes(5, &[bytes(1, key), items].concat())
    };
    let spec = [items(b"k"), items(b"l")].concat();
    let body = envelope(
        "authorization.k8s.io/v1",
        "SubjectAccessReview",
        &bytes(2, &spec),
    );
    let review = decode(&body).unwrap().unwrap();
    assert_eq!(review["spec"]["extra"], json!({"k": ["x"], "l": ["x"]}));
}

#[test]
fn other_kinds_and_other_bytes_are_told_apart() {
    assert_eq!(decode(&envelope("example.org/v1", "Widget", b"")), Ok(None));
    assert!(decode(b"k8s").unwrap_err().contains("expected prefix"));
    let cut = envelope("policy/v1", "Eviction", b"\x0a\x05ab");
    assert_eq!(decode(&cut), Err("unexpected EOF".to_owned()));
}

proptest! {
    #[test]
    fn no_bytes_panic(content in proptest::collection::vec(any::<u8>(), 0..120), kind in "(Pod|Secret|Node|Service|Event)") {
        let _ = decode(&content);
        let _ = decode(&envelope("v1", &kind, &content));
    }
}
