use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    KINDS, MICROSECONDS, NUMBERS, OTHERS, SCHEMA, STRUCTS, Shape, decode, encode, structure_of,
};

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
        let numbers = NUMBERS[name].values();
        let embedded = numbers
            .clone()
            .filter_map(|field| field.strip_prefix('@'))
            .flat_map(|name| NUMBERS[name].values());
        let known: Vec<&&str> = numbers.chain(embedded).collect();
        for field in shape.fields.keys() {
            let typed = matches!(*field, "apiVersion" | "kind");
            assert!(typed || known.contains(&field), "{name}.{field}");
        }
    }
}

#[test]
fn a_token_request_is_read_as_go_writes_it() {
    // 3600 is a varint of two bytes; empty metadata is written.
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
fn zero_is_kept_in_pointer_fields() {
    let body = envelope("v1", "DeleteOptions", &[1 << 3, 0]);
    let decoded = decode(&body).unwrap().unwrap();
    assert_eq!(decoded["gracePeriodSeconds"], 0);
}

#[test]
fn maps_bytes_and_embedded_types_are_read() {
    let data = bytes(2, &[bytes(1, b"k"), bytes(2, b"hi")].concat());
    let secret = decode(&envelope("v1", "Secret", &data)).unwrap().unwrap();
    assert_eq!(secret["data"], json!({"k": "aGk="}));
    // A volume consists of its name and an embedded volume source: an empty directory is the second kind of source.
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
fn unknown_kinds_and_malformed_bytes_are_distinguished() {
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

/// A value of a shape with all fields set.
fn sample(name: &str, shape: &Shape, depth: usize) -> Value {
    match shape {
        Shape::Text => json!("text"),
        Shape::Bool => json!(true),
        Shape::Integer(_) => json!(-7),
        Shape::Float => json!(2.5),
        Shape::Bytes => json!("aGk="),
        Shape::Quantity => json!("10Gi"),
        Shape::Time if MICROSECONDS.contains(&name) => json!("2026-01-02T03:04:05.000006Z"),
        Shape::Time => json!("2026-01-02T03:04:05Z"),
        Shape::IntOrString => json!("50%"),
        Shape::Any => json!({"a": [1, null, "b"]}),
        Shape::Pointer(to) => sample(name, to, depth),
        Shape::List(item) => json!([sample(name, item, depth), sample(name, item, depth)]),
        Shape::Map(of) => json!({"key": sample(name, of, depth), "other": sample(name, of, depth)}),
        Shape::Struct("schema-or-bool") => json!(true),
        Shape::Struct("schema-or-list") if depth == 0 => json!({}),
        Shape::Struct("schema-or-list") => json!([filled(SCHEMA, depth - 1)]),
        Shape::Struct("schema-or-strings") => json!(["a", "b"]),
        Shape::Struct(_) if depth == 0 => json!({}),
        Shape::Struct(of) => filled(of, depth - 1),
    }
}

fn filled(name: &str, depth: usize) -> Value {
    let shape = structure_of(name).unwrap_or_else(|| panic!("{name}"));
    shape
        .fields
        .iter()
        .filter(|(field, _)| has_number(name, field))
        .map(|(name, field)| ((*name).to_owned(), sample(name, &field.shape, depth)))
        .collect()
}

/// True if a field has a number in the message. `apiVersion` and `kind` are in the envelope.
fn has_number(name: &str, field: &str) -> bool {
    NUMBERS[name].values().any(|found| {
        *found == field
            || found
                .strip_prefix('@')
                .is_some_and(|embedded| has_number(embedded, field))
    })
}

#[test]
fn every_kind_is_written_as_it_is_read() {
    let kinds = KINDS.iter().chain(&OTHERS.1);
    let mut tried = 0;
    for (key, name) in kinds.filter(|(key, _)| !key.ends_with("Kind=List")) {
        let (version, kind) = key.split_once(", Kind=").unwrap();
        for depth in 1..6 {
            let mut object = filled(name, depth);
            object["apiVersion"] = json!(version.trim_start_matches('/'));
            object["kind"] = json!(kind);
            let bytes = encode::encode(&object).unwrap_or_else(|| panic!("{key}"));
            assert_eq!(decode(&bytes), Ok(Some(object)), "{key}");
        }
        tried += 1;
    }
    assert!(tried > 40, "{tried}");
}

#[test]
fn schemas_may_be_flags_lists_and_schemas() {
    let schema = |schema: Value| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "spec": {
                "group": "a", "names": {"plural": "b", "kind": "B"}, "scope": "Namespaced",
                "versions": [{"name": "v1", "served": true, "storage": false, "schema": {"openAPIV3Schema": schema}}],
            },
        })
    };
    for sent in [
        json!({"additionalProperties": false, "minimum": 0, "default": {"a": null}, "enum": [1, "a", null]}),
        json!({"additionalProperties": {"type": "string"}, "items": {"type": "string"}}),
        json!({"x-kubernetes-int-or-string": true, "nullable": true, "maximum": 1.5}),
    ] {
        let bytes = encode::encode(&schema(sent.clone())).unwrap();
        let read = decode(&bytes).unwrap().unwrap();
        assert_eq!(
            read["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
            sent
        );
    }
}

#[test]
fn a_list_and_an_event_are_written_as_go_reads_them() {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let list = json!({
        "apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "7"}, "items": [map],
    });
    // Metadata of the list, then an item: a message whose first field is the metadata, beginning with the name.
    let content = [
        bytes(1, &bytes(2, b"7")),
        bytes(2, &bytes(1, &bytes(1, b"a"))),
    ]
    .concat();
    let expected = envelope("v1", "ConfigMapList", &content);
    assert_eq!(encode::encode(&list), Some(expected));

    let line = json!({"type": "ADDED", "object": map}).to_string();
    let event = encode::event(line.as_bytes()).unwrap();
    let object = bytes(1, &encode::encode(&map).unwrap());
    let message = [bytes(1, b"ADDED"), bytes(2, &object)].concat();
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    assert_eq!(event, [&length[..], &message].concat());
    assert_eq!(
        encode::event(b"{\"type\":\"ADDED\",\"object\":{\"apiVersion\":\"a/v1\",\"kind\":\"B\"}}"),
        None
    );
}
