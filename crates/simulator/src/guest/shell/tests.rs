use super::*;

fn files(pairs: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
    let pairs = pairs.iter();
    pairs
        .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()))
        .collect()
}

fn environment() -> BTreeMap<String, String> {
    BTreeMap::from([("HOST".to_owned(), "node-1.example.org".to_owned())])
}

#[test]
fn the_configuration_gets_the_exported_variables_before_kubeadm() {
    let mut all = files(&[(
        "/etc/kubeadm.yml",
        "name: ${HOST}\nother: $OTHER.\nkept: ${HOST%.*} $\n",
    )]);
    let script = "#!/bin/bash\nset -e\nexport HOST=${HOST%%.*}\nOTHER=local\nenvsubst < /etc/kubeadm.yml > /tmp/x\n\
        mv /tmp/x /etc/kubeadm.yml\nkubeadm join --config /etc/kubeadm.yml\nmv /etc/kubeadm.yml /tmp/\n";
    let ended = run(script, &mut all, environment()).unwrap();
    assert_eq!(
        ended,
        Ended::Kubeadm("kubeadm join --config /etc/kubeadm.yml".to_owned())
    );
    // For envsubst, a variable that is not exported is empty; there are no operators.
    let text = "name: node-1\nother: .\nkept: ${HOST%.*} $\n";
    assert_eq!(all, files(&[("/etc/kubeadm.yml", text)]));
}

#[test]
fn the_shortest_suffix_goes_with_one_sign_and_the_longest_with_two() {
    let state = State {
        exported: environment(),
        local: BTreeMap::new(),
    };
    assert_eq!(state.expanded("${HOST%.*}"), "node-1.example");
    assert_eq!(state.expanded("\"$HOST\""), "node-1.example.org");
    assert_eq!(state.expanded("a-${HOST%%.*}-b"), "a-node-1-b");
    assert_eq!(state.expanded("${NONE}"), "");
}

#[test]
fn a_missing_file_ends_the_script() {
    let error = run(
        "mv /a /b\nkubeadm init",
        &mut BTreeMap::new(),
        BTreeMap::new(),
    );
    assert_eq!(error, Err("/a: No such file or directory".to_owned()));
    let mut all = files(&[("/a/b", "x")]);
    assert_eq!(
        run("mv /a/b /tmp/", &mut all, BTreeMap::new()),
        Ok(Ended::Through)
    );
    assert_eq!(all, files(&[("/tmp/b", "x")]));
}
