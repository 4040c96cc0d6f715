//! Machines of a guest runner on the servers of a cloud that this program knows by its APIs only.

use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::cloud::TestCloud;
use crate::process::{Running, eventually, ferrostack, run, texts};

/// A runner of a few lines: it counts its boots on its disk, and powers itself off when a file asks for it.
const RUNNER: &str = r#"#!/bin/sh
trap 'echo "switched off"; exit 0' TERM
cat >document.json
if grep -q '"name":"refused"' document.json; then echo "there is no room for it" >&2; exit 126; fi
echo $$ >pid
echo boot >>disk/boots
echo "boot $(wc -l <disk/boots)"
while [ ! -e disk/end ]; do sleep 0.05; done
rm disk/end
echo "powered off"
"#;
const USER_DATA: &[u8] = b"#cloud-config\nruncmd: [echo a secret]\n";

/// The project demo, as a client of its APIs.
struct Demo {
    client: reqwest::Client,
    url: String,
    token: String,
    project: String,
}

impl Demo {
    async fn log_in(cloud: &TestCloud) -> Self {
        let client = reqwest::Client::new();
        let domain = json!({"name": "Default"});
        let login = json!({"auth": {
            "identity": {"methods": ["password"], "password": {
                "user": {"name": "demo", "domain": domain, "password": "secret"}}},
            "scope": {"project": {"name": "demo", "domain": domain}},
        }});
        let tokens = client.post(format!("{}/identity/v3/auth/tokens", cloud.url));
        let reply = tokens.json(&login).send().await.unwrap();
        let token = reply.headers()["x-subject-token"]
            .to_str()
            .unwrap()
            .to_owned();
        let body: Value = reply.json().await.unwrap();
        Self {
            client,
            url: cloud.url.clone(),
            token,
            project: body["token"]["project"]["id"].as_str().unwrap().to_owned(),
        }
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let request = self.client.request(method, format!("{}{path}", self.url));
        let request = request.header("x-auth-token", &self.token);
        let request = match &body {
            Some(body) => request.json(body),
            None => request,
        };
        let reply = request.send().await.unwrap();
        let status = reply.status();
        let text = reply.text().await.unwrap();
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Creates a resource; returns it without the key around it.
    async fn make(&self, path: &str, body: Value) -> Value {
        let created = self.ask(Method::POST, path, Some(body)).await;
        created
            .as_object()
            .unwrap()
            .values()
            .next()
            .unwrap()
            .clone()
    }

    async fn get(&self, path: &str) -> Value {
        self.ask(Method::GET, path, None).await
    }

    async fn act(&self, server: &str, action: Value) {
        let path = format!("/compute/v2.1/servers/{server}/action");
        self.ask(Method::POST, &path, Some(action)).await;
    }

    async fn is(&self, server: &str, status: &str) {
        let path = format!("/compute/v2.1/servers/{server}");
        let check = async || {
            let found = self.get(&path).await;
            (found["server"]["status"] == status).then_some(())
        };
        eventually(&format!("server {server} to be {status}"), check).await;
    }
}

fn id(resource: &Value) -> String {
    resource["id"].as_str().unwrap().to_owned()
}

/// A running `simulate guests --guest-runner`.
struct Machines {
    running: Running,
    state: PathBuf,
}

impl Machines {
    fn start(home: &Path, cloud: &TestCloud) -> Self {
        let runner = home.join("runner");
        std::fs::write(&runner, RUNNER).unwrap();
        std::fs::set_permissions(&runner, PermissionsExt::from_mode(0o755)).unwrap();
        let state = home.join("machines");
        let running = ferrostack(home)
            .args([
                "simulate",
                "guests",
                "--cloud",
                "simulated-admin",
                "--interval",
                "1s",
            ])
            .arg("--guest-runner")
            .arg(runner)
            .arg("--state-dir")
            .arg(&state)
            .envs(cloud.variables())
            .start();
        Self { running, state }
    }

    /// Waits for a line with these words; those before it are skipped.
    async fn says(&mut self, words: &str) -> String {
        let what = format!("with `{words}`");
        self.running.line(&what, |line| line.contains(words)).await
    }

    fn console_file(&self, server: &str) -> PathBuf {
        self.state.join(format!("consoles/{server}.log"))
    }

    async fn shows(&self, server: &str, words: &str) {
        let path = self.console_file(server);
        let check = async || {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            text.contains(words).then_some(())
        };
        eventually(&format!("{words:?} on the console of {server}"), check).await;
    }

    fn document(&self, server: &str) -> Value {
        let path = self.state.join(server).join("document.json");
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }

    /// Ends it, and waits for the end.
    async fn stop(self) {
        self.running.stop().await;
    }
}

/// A server with a floating IP, and a load balancer with another one.
struct Site {
    server: String,
    address: IpAddr,
    /// Of what listens on the machine's address.
    port: u16,
    floating: IpAddr,
    balanced: IpAddr,
}

/// The port that the load balancer listens on.
const BALANCED: u16 = 7000;

/// Makes a network with loopback addresses, a server on it, and what leads to it.
async fn site(demo: &Demo, cloud: &TestCloud) -> (Site, TcpListener) {
    let external = cloud.external_network().await;
    // The process id keeps test processes apart.
    let range = format!("127.{}.1.0/24", 130 + std::process::id() % 60);
    let network = id(&demo
        .make(
            "/network/v2.0/networks",
            json!({"network": {"name": "net"}}),
        )
        .await);
    let subnet = json!({"subnet": {"name": "net", "network_id": network, "ip_version": 4, "cidr": range,
        "dns_nameservers": ["9.9.9.9"]}});
    let subnet = id(&demo.make("/network/v2.0/subnets", subnet).await);
    let router =
        json!({"router": {"name": "r", "external_gateway_info": {"network_id": external}}});
    let router = id(&demo.make("/network/v2.0/routers", router).await);
    let path = format!("/network/v2.0/routers/{router}/add_router_interface");
    demo.ask(Method::PUT, &path, Some(json!({"subnet_id": subnet})))
        .await;
    let port = demo
        .make(
            "/network/v2.0/ports",
            json!({"port": {"network_id": network}}),
        )
        .await;
    let address: IpAddr = port["fixed_ips"][0]["ip_address"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let listener = TcpListener::bind((address, 0)).await.unwrap();
    let number = listener.local_addr().unwrap().port();
    let group = port["security_groups"][0].as_str().unwrap();
    let rule = json!({"security_group_rule": {"security_group_id": group, "direction": "ingress",
        "protocol": "tcp", "port_range_min": number, "port_range_max": number}});
    demo.make("/network/v2.0/security-group-rules", rule).await;
    let key = json!({"keypair": {"name": "mine", "public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8mRrfMyWjL1P0sDvJzxgk9eWGNtHLwPZ0JwSbGzyhR a"}});
    demo.make("/compute/v2.1/os-keypairs", key).await;
    let server = server(demo, "one", json!([{"port": id(&port)}])).await;
    let floating = async |port: &str| -> IpAddr {
        let body = json!({"floatingip": {"floating_network_id": external, "port_id": port}});
        let created = demo.make("/network/v2.0/floatingips", body).await;
        created["floating_ip_address"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap()
    };
    let balancer = json!({"loadbalancer": {"name": "lb", "vip_subnet_id": subnet, "listeners": [
        {"name": "l", "protocol": "TCP", "protocol_port": BALANCED, "default_pool": {"name": "p", "protocol": "TCP",
            "lb_algorithm": "ROUND_ROBIN", "members": [{"name": "m", "address": address, "protocol_port": number}]}}]}});
    let balancer = demo
        .make("/load-balancer/v2.0/lbaas/loadbalancers", balancer)
        .await;
    let site = Site {
        server,
        address,
        port: number,
        floating: floating(&id(&port)).await,
        balanced: floating(balancer["vip_port_id"].as_str().unwrap()).await,
    };
    (site, listener)
}

async fn server(demo: &Demo, name: &str, networks: Value) -> String {
    let images = demo.get("/image/v2/images?name=ubuntu-24.04").await;
    let body = json!({"server": {"name": name, "flavorRef": "2", "imageRef": images["images"][0]["id"], "key_name": "mine",
        "config_drive": true, "metadata": {"role": "test"}, "networks": networks, "user_data": STANDARD.encode(USER_DATA)}});
    id(&demo.make("/compute/v2.1/servers", body).await)
}

/// Answers every connection with a word.
async fn greet(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let _ = stream.write_all(b"hello").await;
    }
}

async fn greets(at: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(at).await else {
        return false;
    };
    let mut text = String::new();
    stream.read_to_string(&mut text).await.is_ok() && text == "hello"
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_that_only_see_the_apis_live_as_their_servers_do() {
    let home = tempfile::tempdir().unwrap();
    let cloud = TestCloud::without_guests(home.path()).await;
    let demo = Demo::log_in(&cloud).await;
    let (site, listener) = site(&demo, &cloud).await;
    let one = site.server.as_str();
    let mut machines = Machines::start(home.path(), &cloud);
    machines
        .says("machines on the servers of cloud simulated-admin")
        .await;
    machines.says("/machines/consoles/SERVER_ID.log").await;
    machines.says("one: boots (server").await;
    machines.shows(one, "boot 1\n").await;
    document(&demo, &machines, &site).await;

    // What listens on the machine's address is reached by its floating IP, and through the load balancer.
    let greeter = tokio::spawn(greet(listener));
    for at in [
        SocketAddr::new(site.floating, site.port),
        SocketAddr::new(site.balanced, BALANCED),
    ] {
        eventually(&format!("an answer at {at}"), async || {
            greets(at).await.then_some(())
        })
        .await;
    }
    let member = format!("member {}:{} of load balancer ", site.address, site.port);
    machines.says(&member).await;
    greeter.abort();
    let silent = machines.says(&member).await;
    assert!(silent.ends_with("does not answer"), "{silent}");

    // A volume, and a reboot: a new start with the same disk.
    let volume = json!({"volume": {"name": "v", "size": 3}});
    let volume = id(&demo
        .make(&format!("/volume/v3/{}/volumes", demo.project), volume)
        .await);
    let attachment = json!({"volumeAttachment": {"volumeId": volume}});
    demo.make(
        &format!("/compute/v2.1/servers/{one}/os-volume_attachments"),
        attachment,
    )
    .await;
    let first = machines.document(one)["boot"].as_u64().unwrap();
    demo.act(one, json!({"reboot": {"type": "SOFT"}})).await;
    machines.shows(one, "switched off\nboot 2\n").await;
    let document = machines.document(one);
    assert!(document["boot"].as_u64().unwrap() > first);
    assert_eq!(
        document["volumes"],
        json!([{"id": volume, "device": "/dev/vdb", "size_gib": 3}])
    );

    // A machine that powers itself off stops its server, even if Nova fails at first.
    let fault = json!({"service": "compute", "method": "POST", "route": "/v2.1/servers/{server_id}/action",
        "count": 1, "status": 500, "message": "the message bus is down"});
    demo.ask(Method::POST, "/_simulator/faults", Some(fault))
        .await;
    std::fs::write(machines.state.join(one).join("disk/end"), "").unwrap();
    machines
        .says("one: its machine ended, its server is being stopped")
        .await;
    let failing = machines
        .says("one: its server cannot be stopped, it is tried again")
        .await;
    assert!(failing.contains("the message bus is down"), "{failing}");
    demo.is(one, "SHUTOFF").await;
    machines.says("one: switched off").await;
    machines
        .shows(one, "powered off\nthe guest runner ended: exit status: 0\n")
        .await;
    demo.act(one, json!({"os-start": null})).await;
    machines.shows(one, "boot 3\n").await;
    demo.is(one, "ACTIVE").await;

    // The directory has one owner; the machines end with it, and their disks stay.
    let state = machines.state.to_str().unwrap().to_owned();
    let pid = std::fs::read_to_string(machines.state.join(one).join("pid")).unwrap();
    let second = ferrostack(home.path())
        .args([
            "simulate",
            "guests",
            "--cloud",
            "simulated-admin",
            "--guest-runner",
            "/bin/true",
            "--state-dir",
            &state,
        ])
        .envs(cloud.variables());
    let (_, errors) = texts(&second.output().await);
    assert!(
        errors.contains("it is in use by another process"),
        "{errors}"
    );
    machines.stop().await;
    assert!(
        !Path::new("/proc").join(pid.trim()).exists(),
        "its runner still runs"
    );
    demo.is(one, "ACTIVE").await;
    let machines = Machines::start(home.path(), &cloud);
    machines.shows(one, "boot 4\n").await;

    let path = format!("/compute/v2.1/servers/{one}");
    demo.ask(Method::DELETE, &path, None).await;
    let gone = async || {
        (!machines.state.join(one).exists() && !machines.console_file(one).exists()).then_some(())
    };
    eventually("the disk and the console of a deleted server to go", gone).await;
    machines.stop().await;
}

/// The document and the metadata service, beside what the cloud shows.
async fn document(demo: &Demo, machines: &Machines, site: &Site) {
    let document = machines.document(&site.server);
    let server = &demo
        .get(&format!("/compute/v2.1/servers/{}", site.server))
        .await["server"];
    assert_eq!(document["id"], site.server.as_str());
    assert_eq!(document["hostname"], "one");
    assert_eq!(document["project_id"], demo.project.as_str());
    assert_eq!(
        document["availability_zone"],
        server["OS-EXT-AZ:availability_zone"]
    );
    assert_eq!(document["metadata"], json!({"role": "test"}));
    assert_eq!(document["user_data"], STANDARD.encode(USER_DATA));
    assert_eq!(document["image"]["name"], "ubuntu-24.04");
    assert_eq!(
        document["flavor"],
        json!({"name": "m1.small", "vcpus": 1, "memory_mib": 2048, "disk_gib": 20})
    );
    let port = &document["ports"][0];
    assert_eq!(port["network_name"], "net");
    assert_eq!(
        port["mac_address"],
        server["addresses"]["net"][0]["OS-EXT-IPS-MAC:mac_addr"]
    );
    assert_eq!(port["addresses"][0]["address"], json!(site.address));
    assert_eq!(port["addresses"][0]["dns_nameservers"], json!(["9.9.9.9"]));
    let drive = Path::new(document["config_drive"].as_str().unwrap());
    assert_eq!(
        std::fs::read(drive.join("openstack/latest/user_data")).unwrap(),
        USER_DATA
    );

    // Servers are known by their addresses.
    let service = document["metadata_service"].as_str().unwrap();
    let machine = reqwest::Client::builder()
        .local_address(site.address)
        .build()
        .unwrap();
    let ask = async |client: &reqwest::Client, path: &str| {
        client.get(format!("{service}{path}")).send().await.unwrap()
    };
    let data: Value = ask(&machine, "/openstack/latest/meta_data.json")
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(data["uuid"], site.server.as_str());
    assert_eq!(data["meta"], json!({"role": "test"}));
    assert!(
        data["public_keys"]["mine"]
            .as_str()
            .unwrap()
            .starts_with("ssh-ed25519 "),
        "{data}"
    );
    let text = ask(&machine, "/openstack/latest/user_data")
        .await
        .bytes()
        .await
        .unwrap();
    assert_eq!(text, USER_DATA);
    let stranger = ask(&reqwest::Client::new(), "/openstack/latest/user_data").await;
    assert_eq!(stranger.status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_that_cannot_be_started_is_a_server_in_error() {
    let home = tempfile::tempdir().unwrap();
    let cloud = TestCloud::without_guests(home.path()).await;
    let demo = Demo::log_in(&cloud).await;
    let key = json!({"keypair": {"name": "mine"}});
    demo.make("/compute/v2.1/os-keypairs", key).await;
    let refused = server(&demo, "refused", json!("none")).await;
    let images = demo.get("/image/v2/images?name=ubuntu-24.04").await;
    let plain = json!({"server": {"name": "plain", "flavorRef": "1", "imageRef": images["images"][0]["id"], "networks": "none"}});
    demo.make("/compute/v2.1/servers", plain).await;
    let mut machines = Machines::start(home.path(), &cloud);
    machines
        .says("plain: nothing runs on it, as this user sees no user data")
        .await;
    machines
        .says("refused: cannot be started, its server becomes ERROR: there is no room for it")
        .await;
    demo.is(&refused, "ERROR").await;
    machines.shows(&refused, "there is no room for it").await;
    assert!(
        machines.state.join(&refused).exists(),
        "a server in ERROR keeps its disk"
    );
    demo.ask(
        Method::DELETE,
        &format!("/compute/v2.1/servers/{refused}"),
        None,
    )
    .await;
    let gone = async || (!machines.state.join(&refused).exists()).then_some(());
    eventually("the disk of a deleted server to go", gone).await;
    machines.stop().await;
}

#[tokio::test]
async fn what_machines_lack_is_said_before_the_cloud_is_asked() {
    let home = tempfile::tempdir().unwrap();
    for (args, expected) in [
        (
            &["--guest-runner", "/bin/sh"][..],
            "--guest-runner needs --state-dir",
        ),
        (
            &["--guest-runner", "/nowhere/runner", "--state-dir", "x"],
            "--guest-runner /nowhere/runner: there is no such program",
        ),
        (
            &["--guest-runner", "/", "--state-dir", "x"],
            "is it executable (chmod +x)?",
        ),
        (
            &["--metadata-address", "127.0.0.1:0"],
            "--guest-runner <PROGRAM>",
        ),
    ] {
        let args = [&["simulate", "guests", "--cloud", "nowhere"], args].concat();
        let (_, errors) = texts(&run(home.path(), &args).await);
        assert!(errors.contains(expected), "{expected}\n{errors}");
    }
}
