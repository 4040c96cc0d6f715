use super::*;

/// The CRDs of upstream projects, if they are beside the workspace.
fn upstream() -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/upstream/crds");
    path.is_dir().then_some(path)
}

#[test]
fn the_schemas_of_upstream_crds_all_compile() {
    let Some(root) = upstream() else {
        skipped::because("there is no ../shared/upstream/crds beside the workspace");
        return;
    };
    let mut schemas = 0;
    for directory in fs::read_dir(root).unwrap() {
        for file in fs::read_dir(directory.unwrap().path()).unwrap() {
            let file = file.unwrap().path();
            let text = fs::read_to_string(&file).unwrap();
            let crd: Value = serde_saphyr::from_str(&text).unwrap();
            let versions = crd
                .pointer("/spec/versions")
                .and_then(Value::as_array)
                .unwrap();
            for version in versions {
                let schema = &version["schema"]["openAPIV3Schema"];
                let name = format!("{} {}", file.display(), version["name"]);
                if let Err(errors) = Schema::compile(schema) {
                    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
                    panic!("{name}:\n{}", errors.join("\n"));
                }
                schemas += 1;
            }
        }
    }
    assert!(schemas > 0, "no CRDs found");
}
