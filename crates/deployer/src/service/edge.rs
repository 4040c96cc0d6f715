//! Edge: nginx, which terminates TLS and forwards each request to the service of the port. The edge has the standard
//! port of every API, and 443 for the dashboard, on the addresses of the control nodes, by a Service with these as
//! external IPs: Pods need no rights on their nodes.

use super::definition::{Address, Callers, Definition, File, Probe, Run, Workload, command};
use crate::certificate;
use crate::cloud::Cloud;
use crate::held::{Credentials, GIVEN};
use crate::parameters::{Exposure, Mode, Parameters};
use crate::project::Service;

const USER: &str = "edge";
/// Number of ports in every cloud. The first one of each list belongs to Octavia, the last one to Cinder.
const COMMON_PORTS: usize = 7;
/// Ports of the Pod.
const PORTS: &[(&str, u16)] = &[
    ("load-balancer", 9876),
    ("identity", 5000),
    ("consoles", 6080),
    ("dashboard", 8443),
    ("compute", 8774),
    ("placement", 8778),
    ("image", 9292),
    ("network", 9696),
    ("volume", 8776),
];
/// Ports on the addresses of nodes. Without privileges a Pod has no port below 1024.
const SERVED: &[(&str, u16)] = &[
    ("load-balancer", 9876),
    ("identity", 5000),
    ("consoles", 6080),
    ("dashboard", 443),
    ("compute", 8774),
    ("placement", 8778),
    ("image", 9292),
    ("network", 9696),
    ("volume", 8776),
];
/// Service behind each port, in the same order, with its port.
const BEHIND: &[&str] = &[
    "octavia:9876",
    "keystone:5000",
    "nova-novncproxy:6080",
    "horizon:80",
    "nova:8774",
    "placement:8778",
    "glance:9292",
    "neutron:9696",
    "cinder:8776",
];
/// Directory of the certificate and its key.
const TLS: &str = "/etc/edge/tls";
const CONFIGURATION: &str = "/etc/edge/nginx.conf";
/// Step that writes the certificate.
pub(crate) const CERTIFICATE: &str = "certificate";
/// Shell wrapper: on a quit signal nginx finishes running requests; SIGTERM would cut requests off.
const RUN: &str = "nginx -e stderr -c /etc/edge/nginx.conf & child=$!
trap 'kill -QUIT $child' TERM
wait $child
wait $child";

/// Configuration common to every port. nginx reads a path with a variable for each connection, so a renewed certificate
/// needs no restart. Requests are not logged: URLs of consoles have tokens.
const COMMON: &str = "daemon off;
worker_processes 2;
pid /tmp/nginx.pid;
error_log stderr warn;
events {
    worker_connections 4096;
}
http {
    access_log off;
    server_tokens off;
    client_body_temp_path /tmp/body;
    proxy_temp_path /tmp/proxy;
    fastcgi_temp_path /tmp/fastcgi;
    uwsgi_temp_path /tmp/uwsgi;
    scgi_temp_path /tmp/scgi;
    map $ssl_server_name $certificate {
        default /etc/edge/tls/tls.crt;
    }
    map $ssl_server_name $key {
        default /etc/edge/tls/tls.key;
    }
    map $http_upgrade $connection_upgrade {
        default upgrade;
        '' close;
    }
    ssl_certificate $certificate;
    ssl_certificate_key $key;
    ssl_protocols TLSv1.2 TLSv1.3;
    client_max_body_size 0;
    proxy_http_version 1.1;
    proxy_connect_timeout 10s;
    proxy_read_timeout 600s;
    proxy_send_timeout 600s;
    proxy_set_header Host $http_host;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection $connection_upgrade;
    proxy_set_header X-Forwarded-Proto https;
    proxy_set_header X-Forwarded-For $remote_addr;
    proxy_set_header X-Forwarded-Host '';
    proxy_set_header X-Forwarded-Port '';
    proxy_set_header X-Forwarded-Prefix '';
    proxy_set_header Forwarded '';
";
/// Probe on the port of the dashboard, answered without any service behind the edge.
const ANSWERS: Probe = Probe::Https("dashboard", "/.edge");
const ANSWER: &str = "        location = /.edge {
            return 204;
        }
";
/// Images are streamed, instead of buffered until complete.
const STREAMED: &str = "        proxy_buffering off;
        proxy_request_buffering off;
";
/// Timeout of a console, whose connection lasts hours.
const LONG: &str = "        proxy_read_timeout 12h;
        proxy_send_timeout 12h;
";

/// Ports of the cloud on the addresses of nodes.
pub fn ports() -> impl Iterator<Item = u16> {
    SERVED.iter().map(|(_, port)| *port)
}

/// [`Exposure`] of a cloud with an edge.
pub(crate) fn of(parameters: &Parameters) -> Option<&Exposure> {
    let exposure = parameters.exposure.as_ref()?;
    (exposure.mode == Mode::Edge).then_some(exposure)
}

/// Part of a list for the ports of this cloud.
fn those_of<T>(parameters: &Parameters, list: &'static [T]) -> &'static [T] {
    let first = usize::from(!parameters.has(Service::Octavia));
    let last = 1 + COMMON_PORTS + usize::from(parameters.has(Service::Cinder));
    list.get(first..last).unwrap_or(list)
}

/// URL for users, from a URL inside the cluster.
pub(crate) fn public(parameters: &Parameters, internal: &str) -> String {
    let outside = of(parameters).and_then(|exposure| {
        let (_, rest) = internal.strip_prefix("http://")?.split_once(':')?;
        Some(format!("https://{}:{rest}", exposure.host))
    });
    outside.unwrap_or_else(|| internal.to_owned())
}

/// [`Definition`] of the edge.
///
/// # Errors
/// Reason why there is no certificate.
pub(super) fn definition(
    cloud: &Cloud,
    held: &Credentials,
    exposure: &Exposure,
) -> Result<Definition, String> {
    let parameters = &cloud.parameters;
    let mut run = Run {
        command: command(&["/bin/sh", "-c", RUN]),
        user: USER,
        files: vec![File::public(
            "edge",
            CONFIGURATION,
            configuration(parameters),
        )],
        scratch: vec!["/tmp"],
        ..Run::default()
    };
    match exposure.given() {
        Some(_) => run.keys.push((GIVEN.to_owned(), TLS)),
        None => {
            let issued = certificate::issued(cloud, held, exposure)?;
            let path = |name: &str| format!("{TLS}/{name}");
            run.files.extend([
                File::public("edge-certificate", path("tls.crt"), issued.certificate),
                File::secret("edge-key", path("tls.key"), issued.key.expose().to_owned()),
            ]);
        }
    }
    let mut needs = vec![
        "keystone-api",
        "glance-api",
        "placement-api",
        "neutron-api",
        "nova-api",
        "nova-novncproxy",
        "horizon",
    ];
    if parameters.has(Service::Cinder) {
        needs.push("cinder-api");
    }
    if parameters.has(Service::Octavia) {
        needs.push("octavia-api");
    }
    if exposure.given().is_some() {
        needs.push(CERTIFICATE);
    }
    Ok(Definition {
        name: "edge",
        addresses: vec![Address {
            name: "edge",
            workload: "edge",
            ports: those_of(parameters, SERVED),
            replicas: false,
            callers: Callers::Anyone,
        }],
        external: exposure.nodes(),
        workloads: vec![Workload {
            name: "edge",
            stateful: None,
            run,
            ports: those_of(parameters, PORTS),
            ready: ANSWERS,
            alive: Some(ANSWERS),
            needs,
        }],
        ..Definition::default()
    })
}

fn configuration(parameters: &Parameters) -> String {
    let mut text = COMMON.to_owned();
    for ((name, port), behind) in those_of(parameters, PORTS)
        .iter()
        .zip(those_of(parameters, BEHIND))
    {
        let more = match *name {
            "image" => STREAMED,
            "consoles" => LONG,
            "dashboard" => ANSWER,
            _ => "",
        };
        text += &format!(
            "    server {{
        listen {port} ssl;
{more}        location / {{
            proxy_pass http://{behind};
        }}
    }}
"
        );
    }
    text + "}\n"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::desired::tests::{cloud, full, held};
    use crate::release::Release;
    use crate::service::definitions;

    #[test]
    fn every_service_of_the_catalogue_has_its_port_at_the_edge() {
        for release in Release::ALL {
            let cloud = cloud(&full(release));
            let text = configuration(&cloud.parameters);
            let (definitions, problems) = definitions(&cloud, &held());
            assert_eq!(problems, Vec::<String>::new());
            for entry in definitions.iter().flat_map(|it| &it.catalogue) {
                let behind = entry.url.strip_prefix("http://").unwrap();
                let behind = behind.split('/').next().unwrap();
                let (_, port) = behind.split_once(':').unwrap();
                let server = format!("        listen {port} ssl;\n");
                let pass = format!("proxy_pass http://{behind};\n");
                let (_, rest) = text.split_once(&server).unwrap();
                let server = rest.split("    server {").next().unwrap();
                assert!(server.contains(&pass), "{}: {server}", entry.kind);
            }
        }
    }

    #[test]
    fn the_dashboard_is_on_443_of_the_nodes() {
        let text = configuration(&Parameters::from_release(Release::Zed));
        let (_, server) = text.split_once("        listen 8443 ssl;\n").unwrap();
        let server = server.split("    server {").next().unwrap();
        assert!(
            server.contains("proxy_pass http://horizon:80;\n"),
            "{server}"
        );
        let names = |ports: &[(&'static str, u16)]| -> Vec<&str> {
            ports.iter().map(|(name, _)| *name).collect()
        };
        assert_eq!(names(PORTS), names(SERVED));
        let different = PORTS.iter().zip(SERVED).filter(|(pod, node)| pod != node);
        let different: Vec<_> = different.map(|(_, node)| *node).collect();
        assert_eq!(different, [("dashboard", 443)]);
    }

    #[test]
    fn urls_follow_the_exposure() {
        let with = |exposure| cloud(&json!({"release": "zed", "exposure": exposure})).parameters;
        let edge = with(json!({"mode": "Edge", "host": "192.0.2.7"}));
        let url = "http://nova:8774/v2.1";
        assert_eq!(public(&edge, url), "https://192.0.2.7:8774/v2.1");
        assert_eq!(public(&with(json!({"mode": "None"})), url), url);
        assert_eq!(public(&Parameters::from_release(Release::Zed), url), url);
    }
}
