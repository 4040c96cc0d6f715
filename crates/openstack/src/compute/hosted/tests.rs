use serde_json::json;

use super::*;
use crate::lenient;

#[test]
fn user_data_is_decoded_and_never_printed() {
    let server: HostedServer = lenient::from_value(json!({
        "id": "s1",
        "name": "node",
        "status": "ACTIVE",
        "tenant_id": "p1",
        "user_id": "u1",
        "config_drive": "True",
        "OS-EXT-SRV-ATTR:hostname": "node",
        "OS-EXT-SRV-ATTR:user_data": "c2Vj\ncmV0",
    }))
    .unwrap();
    assert_eq!(server.server.name, "node");
    assert_eq!(server.hostname, "node");
    assert_eq!(server.user_id, "u1");
    assert!(server.has_config_drive());
    assert_eq!(server.user_data.as_ref().unwrap().bytes(), "secret");
    assert!(!format!("{server:?}").contains("secret"));
}

#[test]
fn a_server_without_user_data_has_none() {
    for value in [json!(null), json!("")] {
        let server: HostedServer =
            lenient::from_value(json!({"id": "s1", "OS-EXT-SRV-ATTR:user_data": value})).unwrap();
        assert_eq!(server.user_data, None);
        assert!(!server.has_config_drive());
    }
}

#[test]
fn user_data_that_is_not_base64_is_an_error_that_says_so() {
    let parsed: serde_json::Result<HostedServer> =
        lenient::from_value(json!({"OS-EXT-SRV-ATTR:user_data": "#cloud-config"}));
    let error = parsed.unwrap_err().to_string();
    assert!(error.contains("not base64"), "{error}");
}
