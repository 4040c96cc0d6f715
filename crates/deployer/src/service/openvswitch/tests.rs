use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// The programs that the start of ovs-vswitchd calls: they write down what they are asked. `eth0` has an address, `eth1` has
/// none, and there is no other interface. The shell makes them: a file that a thread of the tests has open cannot be executed.
const PROGRAMS: &str = r#"
program() { printf '#!/bin/sh\n%s\n' "$2" >"$PROGRAMS/$1"; chmod 755 "$PROGRAMS/$1"; }
program ovs-vsctl 'echo "$*" >>"$CALLS"'
program ovs-dpctl "exit $WITHOUT_MODULE"
program ovs-vswitchd 'echo started >>"$CALLS"'
program ip 'case "$*" in
"link show dev eth0" | "link show dev eth1") ;;
"link show dev"*) exit 1 ;;
*"dev eth0"*) echo "2: eth0 inet 192.0.2.1/24" ;;
esac'
"#;

/// A node on which ovs-vswitchd starts.
struct Node {
    directory: tempfile::TempDir,
    without_module: bool,
}

impl Node {
    fn new(module: bool) -> Node {
        Node {
            directory: tempfile::tempdir().unwrap(),
            without_module: !module,
        }
    }

    fn start(&self, words: &[&str]) -> Output {
        let programs = self.directory.path();
        let path = format!("{}:/usr/bin:/bin", programs.display());
        let script = include_str!("../../../programs/openvswitch.sh");
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &format!("{PROGRAMS}{script}"), "openvswitch.sh"]);
        shell.args(words).env_clear().env("PATH", path);
        shell.env("PROGRAMS", programs).env("CALLS", self.calls());
        shell.env("WITHOUT_MODULE", u8::from(self.without_module).to_string());
        shell.env("NODE", "node-7").env("ADDRESS", "192.0.2.7");
        shell.output().unwrap()
    }

    fn calls(&self) -> PathBuf {
        self.directory.path().join("calls")
    }

    fn asked(&self) -> String {
        fs::read_to_string(self.calls()).unwrap_or_default()
    }

    /// The words with which it refuses to start.
    fn refused(&self, words: &[&str]) -> String {
        let output = self.start(words);
        assert!(!output.status.success());
        assert_eq!(self.asked(), "", "nothing is changed before");
        String::from_utf8(output.stderr).unwrap()
    }
}

#[test]
fn a_node_with_a_physical_network_offers_itself_for_gateways_of_routers() {
    let node = Node::new(true);
    let output = node.start(&["Auto", "tcp:sb:6642", "public=eth1", "inner="]);
    assert!(output.status.success(), "{output:?}");
    let asked = node.asked();
    assert!(asked.contains("external_ids:ovn-cms-options=enable-chassis-as-gw"));
    assert!(asked.contains("ovn-bridge-mappings=\"public:br-public,inner:br-inner\""));
    assert!(asked.contains("add-port br-public eth1"), "{asked}");
    assert!(asked.ends_with("started\n"), "{asked}");

    let node = Node::new(true);
    assert!(node.start(&["Auto", "tcp:sb:6642"]).status.success());
    assert!(!node.asked().contains("enable-chassis-as-gw"));
}

#[test]
fn packets_are_in_the_kernel_where_it_has_the_module() {
    for (module, datapath, tso) in [(true, "system", "false"), (false, "netdev", "true")] {
        let node = Node::new(module);
        assert!(node.start(&["Auto", "tcp:sb:6642"]).status.success());
        let asked = node.asked();
        assert!(asked.contains(&format!("ovn-bridge-datapath-type={datapath}")));
        assert!(asked.contains(&format!("userspace-tso-enable={tso}")));
    }
}

#[test]
fn what_the_node_cannot_is_refused_by_its_name_and_that_of_the_field() {
    let node = Node::new(false);
    let module = node.refused(&["System", "tcp:sb:6642"]);
    assert!(module.starts_with("network.datapath: System: the kernel of node-7 has no module"));
    let missing = node.refused(&["Auto", "tcp:sb:6642", "public=eth9"]);
    assert!(missing.starts_with("network.physical public: node-7 has no interface eth9; it has"));
    let taken = node.refused(&["Auto", "tcp:sb:6642", "public=eth0"]);
    assert!(taken.starts_with("network.physical public: eth0 of node-7 carries an address"));
}
