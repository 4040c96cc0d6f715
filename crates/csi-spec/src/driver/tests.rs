use super::*;

async fn names(served: Served) -> Vec<String> {
    let plugin = Plugin::new(served, Readiness::default());
    let request = GetPluginCapabilitiesRequest {};
    let answer = plugin.get_plugin_capabilities(Context::default(), request);
    let capabilities = answer.await.unwrap().capabilities;
    let name = |capability: &PluginCapability| match capability.r#type.unwrap() {
        Type::Service(service) => service.r#type().as_str_name().to_owned(),
        Type::VolumeExpansion(expansion) => expansion.r#type().as_str_name().to_owned(),
    };
    capabilities.iter().map(name).collect()
}

#[tokio::test]
async fn the_name_is_that_of_the_go_driver_and_the_version_is_not_empty() {
    let plugin = Plugin::new(Served::default(), Readiness::default());
    let answer = plugin.get_plugin_info(Context::default(), GetPluginInfoRequest {});
    let info = answer.await.unwrap();
    assert_eq!(info.name, "cinder.csi.openstack.org");
    assert_eq!(
        info.vendor_version,
        format!("ferrostack-{}", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(info.manifest["csi"], "1.13.0");
}

#[tokio::test]
async fn capabilities_are_those_of_the_services_that_the_process_has() {
    let controller = Served {
        controller: true,
        groups: false,
        topology: true,
    };
    assert_eq!(
        names(controller).await,
        [
            "CONTROLLER_SERVICE",
            "VOLUME_ACCESSIBILITY_CONSTRAINTS",
            "ONLINE",
            "OFFLINE"
        ]
    );
    let groups = Served {
        groups: true,
        topology: false,
        ..controller
    };
    assert_eq!(
        names(groups).await,
        [
            "CONTROLLER_SERVICE",
            "GROUP_CONTROLLER_SERVICE",
            "ONLINE",
            "OFFLINE"
        ]
    );
    assert_eq!(names(Served::default()).await, ["ONLINE", "OFFLINE"]);
}

#[tokio::test]
async fn a_controller_is_ready_when_the_cloud_has_answered_and_a_node_at_once() {
    let readiness = Readiness::default();
    let probe = async |controller| {
        let served = Served {
            controller,
            ..Served::default()
        };
        let plugin = Plugin::new(served, readiness.clone());
        let answer = plugin.probe(Context::default(), ProbeRequest {}).await;
        answer.unwrap().ready
    };
    assert_eq!(probe(true).await, Some(false));
    assert_eq!(probe(false).await, Some(true));
    readiness.ready();
    assert_eq!(probe(true).await, Some(true));
}
