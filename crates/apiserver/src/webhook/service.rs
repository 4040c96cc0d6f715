//! Resolution of a Service, as by kube-proxy: through EndpointSlices or Endpoints.

use apimachinery::selector::LabelSelector;
use serde_json::Value;

use crate::store::Store;

/// Host and port behind a port of a Service. The messages are from kube-apiserver's resolver.
pub(super) fn resolve(
    store: &Store,
    namespace: &str,
    name: &str,
    port: u16,
) -> Result<(String, u16), String> {
    let key = format!("{namespace}/{name}");
    let service = store
        .get("/services", &key)
        .ok_or_else(|| format!("service \"{name}\" not found"))?
        .value();
    let spec = &service["spec"];
    if spec["type"] == "ExternalName" {
        let host = spec["externalName"].as_str().unwrap_or_default();
        return Ok((host.to_owned(), port));
    }
    let ports = spec["ports"].as_array().into_iter().flatten();
    let found = ports
        .into_iter()
        .find(|candidate| candidate["port"] == port)
        .ok_or_else(|| format!("no service port {port} found for service \"{name}\""))?;
    let port_name = found["name"].as_str().unwrap_or_default();
    let address = from_slices(store, namespace, name, port_name)
        .or_else(|| from_endpoints(store, &key, port_name));
    address.ok_or_else(|| format!("no endpoints available for service \"{name}\""))
}

fn from_slices(store: &Store, namespace: &str, service: &str, port: &str) -> Option<(String, u16)> {
    let wanted = LabelSelector::parse(&format!("kubernetes.io/service-name={service}")).ok()?;
    let slices: Vec<Value> = {
        let state = store.read();
        let all = state.range("discovery.k8s.io/endpointslices", namespace, None);
        all.filter(|slice| slice.namespace() == namespace && wanted.matches(&slice.facts.labels))
            .map(|slice| slice.value())
            .collect()
    };
    slices.iter().find_map(|slice| {
        let number = number(&slice["ports"], port)?;
        let mut endpoints = slice["endpoints"].as_array()?.iter();
        let ready = endpoints.find(|endpoint| endpoint["conditions"]["ready"] != false)?;
        Some((ready["addresses"][0].as_str()?.to_owned(), number))
    })
}

fn from_endpoints(store: &Store, key: &str, port: &str) -> Option<(String, u16)> {
    let endpoints = store.get("/endpoints", key)?.value();
    endpoints["subsets"].as_array()?.iter().find_map(|subset| {
        let number = number(&subset["ports"], port)?;
        Some((subset["addresses"][0]["ip"].as_str()?.to_owned(), number))
    })
}

/// Number of the port with a name; the name of unnamed ports is empty or missing.
fn number(ports: &Value, name: &str) -> Option<u16> {
    let mut ports = ports.as_array()?.iter();
    let found = ports.find(|port| port["name"].as_str().unwrap_or_default() == name)?;
    found["port"].as_u64()?.try_into().ok()
}
