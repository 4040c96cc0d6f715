use serde_json::json;

use super::*;

#[tokio::test]
async fn pages_of_servers_are_the_whole_list_newest_first() {
    let (cloud, client) = demo().await;
    let mut created = Vec::new();
    for number in 0..7 {
        let body = json!({"server": {"name": format!("s{number}"), "flavorRef": "1",
            "imageRef": "", "networks": "none",
            "block_device_mapping_v2": [{"boot_index": 0, "source_type": "blank",
                "destination_type": "volume", "volume_size": 1}]}});
        let headers = [("openstack-api-version", "compute 2.60")];
        let path = "/compute/v2.1/servers";
        let got = client.send(Method::POST, path, &headers, &body).await;
        assert_eq!(got.status, 202, "{}", got.text);
        created.insert(0, id(&got.body["server"]));
        if number % 3 == 0 {
            cloud.advance_clock(std::time::Duration::from_secs(1));
        }
    }
    let ids = |list: &Value| -> Vec<String> { list.as_array().unwrap().iter().map(id).collect() };
    let whole = ids(&client.fetch("/compute/v2.1/servers").await);
    // Servers that were created at the same moment have no particular order.
    assert_eq!(whole.len(), created.len());
    assert_eq!(whole.last(), created.last());
    for limit in [1, 2, 3, 7, 8] {
        let (mut paged, mut marker) = (Vec::new(), String::new());
        loop {
            let path = format!("/compute/v2.1/servers?limit={limit}{marker}");
            let page = ids(&client.fetch(&path).await);
            let Some(last) = page.last() else { break };
            marker = format!("&marker={last}");
            paged.extend(page);
        }
        assert_eq!(paged, whole, "pages of {limit}");
    }
    let nowhere = client.get("/compute/v2.1/servers?marker=nowhere").await;
    assert_eq!(nowhere.status, 400);
}
